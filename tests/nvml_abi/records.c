/* The answers of devices that have a structure of their own. */

#define _GNU_SOURCE
#include "nvml_stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nvmlReturn_t ask_pci(const char *function, nvmlDevice_t device, const char *arguments,
                            nvmlPciInfo_t *pci)
{
    char values[MAX_ANSWER];
    nvmlReturn_t code = ask_device(function, device, arguments, values);
    if (code != NVML_SUCCESS)
        return code;
    memset(pci, 0, sizeof *pci);
    if (sscanf(values, "%31s %u %u", pci->busId, &pci->pciDeviceId, &pci->pciSubSystemId) < 1)
        return NVML_ERROR_UNKNOWN;
    if (strcmp(pci->busId, "unreadable") == 0)
        strcpy(pci->busId, "\xff\xfe");
    else if (sscanf(pci->busId, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3)
        snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT,
                 pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return ask_pci("nvmlDeviceGetPciInfo_v3", device, "", pci);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 nvmlPciInfo_t *pci)
{
    char arguments[16];
    snprintf(arguments, sizeof arguments, " %u", link);
    return ask_pci("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, arguments, pci);
}

/* Numbers of a list "4711:1024:-:-"; a dash is the field's own word for unknown. */
static void take_process(const char *item, nvmlProcessInfo_v2_t *process)
{
    char memory[32], gpu_instance[16], compute_instance[16];
    memset(process, 0, sizeof *process);
    sscanf(item, "%u:%31[^:]:%15[^:]:%15s", &process->pid, memory, gpu_instance, compute_instance);
    process->usedGpuMemory = memory[0] == '-' ? ~0ULL : strtoull(memory, NULL, 10);
    process->gpuInstanceId =
        gpu_instance[0] == '-' ? 0xFFFFFFFF : (unsigned int)strtoul(gpu_instance, NULL, 10);
    process->computeInstanceId =
        compute_instance[0] == '-' ? 0xFFFFFFFF : (unsigned int)strtoul(compute_instance, NULL, 10);
}

static nvmlReturn_t ask_processes(const char *function, nvmlDevice_t device, unsigned int *count,
                                  nvmlProcessInfo_v2_t *processes)
{
    char values[MAX_ANSWER], *position = values;
    unsigned int room = *count;
    nvmlReturn_t code = ask_list(function, device, "", values, count);
    if (code != NVML_SUCCESS)
        return code;
    if (*count > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < *count; i++) {
        char *item = next_item(&position);
        if (item == NULL)
            return NVML_ERROR_UNKNOWN;
        take_process(item, &processes[i]);
    }
    return NVML_SUCCESS;
}

#define PROCESSES(NAME, ASKED, TYPE)                                                              \
    nvmlReturn_t NAME(nvmlDevice_t device, unsigned int *count, TYPE *processes)                  \
    {                                                                                             \
        _Static_assert(sizeof(TYPE) == sizeof(nvmlProcessInfo_v2_t), "one layout, two names");    \
        return ask_processes(ASKED, device, count, (nvmlProcessInfo_v2_t *)processes);            \
    }

#ifndef NEW_DRIVER
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, "nvmlDeviceGetComputeRunningProcesses",
          nvmlProcessInfo_v2_t)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, "nvmlDeviceGetGraphicsRunningProcesses",
          nvmlProcessInfo_v2_t)
#endif
#ifndef OLD_DRIVER
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "nvmlDeviceGetComputeRunningProcesses",
          nvmlProcessInfo_t)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "nvmlDeviceGetGraphicsRunningProcesses",
          nvmlProcessInfo_t)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "nvmlDeviceGetMPSComputeRunningProcesses",
          nvmlProcessInfo_t)
#endif

static void take_field(const char *values, nvmlFieldValue_t *field)
{
    unsigned int code = NVML_ERROR_UNKNOWN, type = 0;
    char number[64] = "";
    sscanf(values, "%u %u %63s", &code, &type, number);
    field->nvmlReturn = (nvmlReturn_t)code;
    field->valueType = (nvmlValueType_t)type;
    memset(&field->value, 0xA5, sizeof field->value); /* what the type does not cover is noise */
    unsigned long long natural = strtoull(number, NULL, 10);
    long long whole = strtoll(number, NULL, 10);
    switch (field->valueType) {
    case NVML_VALUE_TYPE_DOUBLE: field->value.dVal = strtod(number, NULL); break;
    case NVML_VALUE_TYPE_UNSIGNED_INT: field->value.uiVal = (unsigned int)natural; break;
    case NVML_VALUE_TYPE_UNSIGNED_LONG: field->value.ulVal = (unsigned long)natural; break;
    case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: field->value.ullVal = natural; break;
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG: field->value.sllVal = whole; break;
    case NVML_VALUE_TYPE_SIGNED_INT: field->value.siVal = (int)whole; break;
    case NVML_VALUE_TYPE_UNSIGNED_SHORT: field->value.usVal = (unsigned short)natural; break;
    default: break;
    }
}

/* Fields of single links and of C2C came with Hopper, after the old drivers. */
static int is_known(const nvmlFieldValue_t *field)
{
#ifdef OLD_DRIVER
    return field->fieldId < NVML_FI_DEV_NVLINK_GET_SPEED;
#else
    return field->fieldId != 0;
#endif
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields)
{
    char values[MAX_ANSWER], arguments[32];
    for (int i = 0; i < count; i++) {
        snprintf(arguments, sizeof arguments, " %llu",
                 (unsigned long long)fields[i].scopeId << 32 | fields[i].fieldId);
        nvmlReturn_t code = ask_device("nvmlDeviceGetFieldValues", device, arguments, values);
        if (code != NVML_SUCCESS)
            return code;
        take_field(is_known(&fields[i]) ? values : "3", &fields[i]);
    }
    return NVML_SUCCESS;
}
