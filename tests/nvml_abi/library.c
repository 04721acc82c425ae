/* The library as a whole: its start and end, its versions, the handles of devices, events. */

#define _GNU_SOURCE
#include "nvml_stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct nvmlDevice_st *boards;
static struct nvmlDevice_st *instances;
static int open_event_sets;

static void name_handles(const char *board_format, const char *instance_format)
{
    for (unsigned int i = 0; i < MAX_BOARDS; i++) {
        boards[i].board = i;
        boards[i].instance = -1;
        snprintf(boards[i].name, sizeof boards[i].name, board_format, i);
        for (int j = 0; j < MAX_INSTANCES; j++) {
            struct nvmlDevice_st *instance = &instances[i * MAX_INSTANCES + (unsigned int)j];
            instance->board = i;
            instance->instance = j;
            snprintf(instance->name, sizeof instance->name, instance_format, i, j);
        }
    }
}

/* Each start has handles of its own, so that those of an earlier one are found out. */
nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    char values[MAX_ANSWER];
    (void)flags;
    nvmlReturn_t code = ask("nvmlInit -", values);
    if (code != NVML_SUCCESS || references++ > 0)
        return code;
    boards = calloc(MAX_BOARDS, sizeof *boards);
    instances = calloc(MAX_BOARDS * MAX_INSTANCES, sizeof *instances);
    name_handles("gpu%u", "gpu%u/mig%d");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (open_event_sets > 0 || open_samples > 0)
        return NVML_ERROR_IN_USE; /* stricter than the driver, which forgives it */
    if (--references == 0)
        name_handles("stale%u", "stale%u/%d");
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    return result == NVML_SUCCESS ? "Success" : "An error of the NVML stand-in";
}

#define SYSTEM_TEXT(NAME)                                                                         \
    nvmlReturn_t NAME(char *text, unsigned int length)                                            \
    {                                                                                             \
        char values[MAX_ANSWER];                                                                  \
        nvmlReturn_t code = ask_system(#NAME, values);                                            \
        return code == NVML_SUCCESS ? copy_text(values, text, length) : code;                     \
    }

SYSTEM_TEXT(nvmlSystemGetDriverVersion)
SYSTEM_TEXT(nvmlSystemGetNVMLVersion)

static nvmlReturn_t system_number(const char *function, unsigned int *number)
{
    char values[MAX_ANSWER];
    unsigned long long wide;
    nvmlReturn_t code = ask_system(function, values);
    if (code == NVML_SUCCESS)
        code = take_numbers(values, &wide, 1);
    if (code == NVML_SUCCESS)
        *number = (unsigned int)wide;
    return code;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return system_number("nvmlSystemGetCudaDriverVersion", (unsigned int *)version);
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}
#endif

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    return system_number("nvmlDeviceGetCount", count);
}

/* ---- handles ---- */

static unsigned int board_count(void)
{
    unsigned int count = 0;
    if (nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
        return 0;
    return count < MAX_BOARDS ? count : MAX_BOARDS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    char values[MAX_ANSWER];
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (index >= board_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ask_device("nvmlDeviceGetHandleByIndex", &boards[index], "", values);
    if (code == NVML_SUCCESS || code == NVML_ERROR_NOT_SUPPORTED) {
        *device = &boards[index];
        return NVML_SUCCESS;
    }
    return code;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *instance)
{
    char values[MAX_ANSWER], arguments[16];
    snprintf(arguments, sizeof arguments, " %u", index);
    nvmlReturn_t code =
        ask_device("nvmlDeviceGetMigDeviceHandleByIndex", device, arguments, values);
    if (code == NVML_SUCCESS && index < MAX_INSTANCES)
        *instance = &instances[device->board * MAX_INSTANCES + index];
    return code;
}

static int has_uuid(nvmlDevice_t device, const char *uuid)
{
    char own[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    return nvmlDeviceGetUUID(device, own, sizeof own) == NVML_SUCCESS && strcmp(own, uuid) == 0;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    for (unsigned int i = 0; i < board_count(); i++) {
        *device = &boards[i];
        if (has_uuid(*device, uuid))
            return NVML_SUCCESS;
        for (int j = 0; j < MAX_INSTANCES; j++) {
            *device = &instances[i * MAX_INSTANCES + (unsigned int)j];
            if (has_uuid(*device, uuid))
                return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    nvmlPciInfo_t own;
    for (unsigned int i = 0; i < board_count(); i++) {
        *device = &boards[i];
        if (nvmlDeviceGetPciInfo_v3(*device, &own) == NVML_SUCCESS &&
            (strcasecmp(own.busId, bus_id) == 0 || strcasecmp(own.busIdLegacy, bus_id) == 0))
            return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_instance)
{
    *is_instance = device->instance >= 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *board)
{
    *board = &boards[device->board];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    *index = device->instance >= 0 ? (unsigned int)device->instance : device->board;
    return NVML_SUCCESS;
}

/* ---- events ---- */

struct nvmlEventSet_st {
    unsigned int taken; /* lines of events looked at so far */
    int registered[MAX_BOARDS];
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    *set = calloc(1, sizeof **set);
    if (*set == NULL)
        return NVML_ERROR_MEMORY;
    open_event_sets++;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set)
{
    char values[MAX_ANSWER], key[MAX_KEY];
    snprintf(key, sizeof key, "nvmlDeviceRegisterEvents %s", device->name);
    if ((types & ~(unsigned long long)nvmlEventTypeAll) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ask(key, values);
    if (code != NVML_SUCCESS && code != NVML_ERROR_NOT_SUPPORTED)
        return code;
    set->registered[device->board] = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout)
{
    char values[MAX_ANSWER], key[MAX_KEY];
    unsigned int board;
    (void)timeout; /* what has not happened yet will not happen while this one waits */
    for (;; set->taken++) {
        snprintf(key, sizeof key, "nvmlEventSetWait - %u", set->taken);
        nvmlReturn_t code = ask(key, values);
        if (code == NVML_ERROR_NOT_SUPPORTED)
            return NVML_ERROR_TIMEOUT;
        if (code != NVML_SUCCESS)
            return code;
        if (sscanf(values, "gpu%u %llu", &board, &data->eventData) != 2 || board >= MAX_BOARDS)
            return NVML_ERROR_UNKNOWN;
        if (set->registered[board])
            break;
    }
    set->taken++;
    data->device = &boards[board];
    data->eventType = nvmlEventTypeXidCriticalError;
    data->gpuInstanceId = data->computeInstanceId = 0xFFFFFFFF;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    free(set);
    open_event_sets--;
    return NVML_SUCCESS;
}
