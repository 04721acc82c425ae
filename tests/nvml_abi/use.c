/* Who uses a board how much: samples of processes and of vGPUs, and the vGPUs themselves. */

#define _GNU_SOURCE
#include "nvml_stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    unsigned int owner;
    unsigned long long stamp;
    unsigned int sm, memory, encoder, decoder;
};

/* The samples newer than a time stamp, as many as there is room for; `count` is how many there are. */
static nvmlReturn_t ask_samples(const char *function, nvmlDevice_t device, unsigned long long since,
                                struct sample *samples, unsigned int room, unsigned int *count)
{
    char values[MAX_ANSWER], *position = values, *item;
    unsigned int all;
    nvmlReturn_t code = ask_list(function, device, " 0", values, &all);
    *count = 0;
    if (code != NVML_SUCCESS)
        return code;
    while ((item = next_item(&position)) != NULL) {
        struct sample sample;
        if (sscanf(item, "%u:%llu:%u:%u:%u:%u", &sample.owner, &sample.stamp, &sample.sm,
                   &sample.memory, &sample.encoder, &sample.decoder) != 6)
            return NVML_ERROR_UNKNOWN;
        if (since != 0 && sample.stamp <= since)
            continue;
        if (*count < room)
            samples[*count] = sample;
        ++*count;
    }
    if (*count == 0)
        return NVML_ERROR_NOT_FOUND;
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

enum { MAX_SAMPLES = 2048 };

#ifndef NEW_DRIVER
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *target,
                                             unsigned int *count, unsigned long long since)
{
    static struct sample samples[MAX_SAMPLES];
    unsigned int room = target == NULL ? 0 : *count < MAX_SAMPLES ? *count : MAX_SAMPLES;
    nvmlReturn_t code =
        ask_samples("nvmlDeviceGetProcessUtilization", device, since, samples, room, count);
    for (unsigned int i = 0; code == NVML_SUCCESS && i < *count; i++)
        target[i] = (nvmlProcessUtilizationSample_t){
            samples[i].owner,  samples[i].stamp,   samples[i].sm,
            samples[i].memory, samples[i].encoder, samples[i].decoder};
    return code;
}
#endif

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_t *asked)
{
    static struct sample samples[MAX_SAMPLES];
    unsigned int count = asked->processSamplesCount;
    if (asked->version != nvmlProcessesUtilizationInfo_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    unsigned int room = asked->procUtilArray == NULL ? 0 : count < MAX_SAMPLES ? count : MAX_SAMPLES;
    nvmlReturn_t code = ask_samples("nvmlDeviceGetProcessUtilization", device,
                                    asked->lastSeenTimeStamp, samples, room, &count);
    asked->processSamplesCount = count;
    for (unsigned int i = 0; code == NVML_SUCCESS && i < count; i++)
        asked->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = samples[i].stamp,
            .pid = samples[i].owner,
            .smUtil = samples[i].sm,
            .memUtil = samples[i].memory,
            .encUtil = samples[i].encoder,
            .decUtil = samples[i].decoder,
        };
    return code;
}
#endif

/* What a union does not cover is noise. */
static nvmlValue_t percent(unsigned int number)
{
    nvmlValue_t value;
    memset(&value, 0xA5, sizeof value);
    value.uiVal = number;
    return value;
}

nvmlReturn_t nvmlDeviceGetVgpuUtilization(nvmlDevice_t device, unsigned long long since,
                                          nvmlValueType_t *type, unsigned int *count,
                                          nvmlVgpuInstanceUtilizationSample_t *target)
{
    static struct sample samples[MAX_SAMPLES];
    unsigned int room = target == NULL ? 0 : *count < MAX_SAMPLES ? *count : MAX_SAMPLES;
    nvmlReturn_t code =
        ask_samples("nvmlDeviceGetVgpuUtilization", device, since, samples, room, count);
    *type = NVML_VALUE_TYPE_UNSIGNED_INT;
    for (unsigned int i = 0; code == NVML_SUCCESS && i < *count; i++)
        target[i] = (nvmlVgpuInstanceUtilizationSample_t){
            samples[i].owner,           samples[i].stamp,
            percent(samples[i].sm),     percent(samples[i].memory),
            percent(samples[i].encoder), percent(samples[i].decoder)};
    return code;
}

nvmlReturn_t nvmlDeviceGetActiveVgpus(nvmlDevice_t device, unsigned int *count,
                                      nvmlVgpuInstance_t *instances)
{
    char values[MAX_ANSWER], *position = values;
    unsigned int room = *count;
    nvmlReturn_t code = ask_list("nvmlDeviceGetActiveVgpus", device, "", values, count);
    if (code != NVML_SUCCESS)
        return code;
    if (*count > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < *count; i++)
        instances[i] = (unsigned int)strtoul(next_item(&position), NULL, 10);
    return NVML_SUCCESS;
}

static nvmlReturn_t ask_vgpu(const char *function, nvmlVgpuInstance_t instance, char *values)
{
    char key[MAX_KEY];
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    snprintf(key, sizeof key, "%s - %u", function, instance);
    nvmlReturn_t code = ask(key, values);
    return code == NVML_ERROR_NOT_SUPPORTED ? NVML_ERROR_NOT_FOUND : code;
}

nvmlReturn_t nvmlVgpuInstanceGetUUID(nvmlVgpuInstance_t instance, char *text, unsigned int length)
{
    char values[MAX_ANSWER];
    nvmlReturn_t code = ask_vgpu("nvmlVgpuInstanceGetUUID", instance, values);
    return code == NVML_SUCCESS ? copy_text(values, text, length) : code;
}

nvmlReturn_t nvmlVgpuInstanceGetVmID(nvmlVgpuInstance_t instance, char *text, unsigned int length,
                                     nvmlVgpuVmIdType_t *type)
{
    char values[MAX_ANSWER];
    nvmlReturn_t code = ask_vgpu("nvmlVgpuInstanceGetVmID", instance, values);
    *type = strchr(values, '-') != NULL ? NVML_VGPU_VM_ID_UUID : NVML_VGPU_VM_ID_DOMAIN_ID;
    return code == NVML_SUCCESS ? copy_text(values, text, length) : code;
}

nvmlReturn_t nvmlVgpuInstanceGetFbUsage(nvmlVgpuInstance_t instance, unsigned long long *used)
{
    char values[MAX_ANSWER];
    nvmlReturn_t code = ask_vgpu("nvmlVgpuInstanceGetFbUsage", instance, values);
    return code == NVML_SUCCESS ? take_numbers(values, used, 1) : code;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                 nvmlGpuInstanceProfileInfo_t *info)
{
    unsigned long long numbers[5];
    char arguments[16];
    snprintf(arguments, sizeof arguments, " %u", profile);
    nvmlReturn_t code =
        ask_numbers("nvmlDeviceGetGpuInstanceProfileInfo", device, arguments, numbers, 5);
    if (code == NVML_SUCCESS)
        *info = (nvmlGpuInstanceProfileInfo_t){
            .id = (unsigned int)numbers[0],
            .sliceCount = (unsigned int)numbers[1],
            .instanceCount = (unsigned int)numbers[2],
            .multiprocessorCount = (unsigned int)numbers[3],
            .memorySizeMB = numbers[4],
        };
    return code;
}
