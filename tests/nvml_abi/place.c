/* The answers about where a board is: its pairs, its NUMA nodes and CPUs, its fabric, its rack. */

#define _GNU_SOURCE
#include "nvml_stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nvmlReturn_t ask_pair(const char *function, nvmlDevice_t device, nvmlDevice_t other,
                             const char *more, unsigned int *value)
{
    unsigned long long number;
    char arguments[32];
    if (other == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(arguments, sizeof arguments, " %u%s", other->board, more);
    nvmlReturn_t code = ask_numbers(function, device, arguments, &number, 1);
    if (code == NVML_SUCCESS)
        *value = (unsigned int)number;
    return code;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other,
                                                 nvmlGpuTopologyLevel_t *level)
{
    return ask_pair("nvmlDeviceGetTopologyCommonAncestor", device, other, "",
                    (unsigned int *)level);
}

/* Asked twice, as NVML wants it: first how many there are, then for their handles. */
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int *count, nvmlDevice_t *others)
{
    char arguments[16], values[MAX_ANSWER], *rest = values;
    snprintf(arguments, sizeof arguments, " %u", (unsigned int)level);
    nvmlReturn_t code =
        ask_device("nvmlDeviceGetTopologyNearestGpus", device, arguments, values);
    if (code != NVML_SUCCESS)
        return code;
    unsigned int room = *count, found = 0;
    for (;;) {
        char *end;
        unsigned long board = strtoul(rest, &end, 10);
        if (end == rest)
            break;
        if (others != NULL && found < room)
            nvmlDeviceGetHandleByIndex_v2((unsigned int)board, &others[found]);
        found++;
        rest = end;
    }
    *count = found;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other,
                                    nvmlGpuP2PCapsIndex_t capability, nvmlGpuP2PStatus_t *status)
{
    char more[16];
    snprintf(more, sizeof more, " %u", (unsigned int)capability);
    return ask_pair("nvmlDeviceGetP2PStatus", device, other, more, (unsigned int *)status);
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                           nvmlNvLinkCapability_t capability, unsigned int *result)
{
    unsigned long long number;
    char arguments[32];
    snprintf(arguments, sizeof arguments, " %u %u", link, (unsigned int)capability);
    nvmlReturn_t code =
        ask_numbers("nvmlDeviceGetNvLinkCapability", device, arguments, &number, 1);
    if (code == NVML_SUCCESS)
        *result = (unsigned int)number;
    return code;
}

/* The state file has the words up to the last that is not zero, the driver writes all. */
static nvmlReturn_t ask_mask(const char *function, nvmlDevice_t device, const char *arguments,
                             unsigned int size, unsigned long *mask)
{
    char values[MAX_ANSWER], *rest = values;
    nvmlReturn_t code = ask_device(function, device, arguments, values);
    if (code != NVML_SUCCESS)
        return code;
    for (unsigned int i = 0; i < size; i++)
        mask[i] = strtoul(rest, &rest, 10);
    return NVML_SUCCESS;
}

#define MASK_WITHIN_SCOPE(NAME)                                                                   \
    nvmlReturn_t NAME(nvmlDevice_t device, unsigned int size, unsigned long *mask,                \
                      nvmlAffinityScope_t scope)                                                  \
    {                                                                                             \
        char arguments[32];                                                                       \
        snprintf(arguments, sizeof arguments, " %u %u", size, scope);                             \
        return ask_mask(#NAME, device, arguments, size, mask);                                    \
    }

MASK_WITHIN_SCOPE(nvmlDeviceGetMemoryAffinity)
MASK_WITHIN_SCOPE(nvmlDeviceGetCpuAffinityWithinScope)

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *mask)
{
    char arguments[16];
    snprintf(arguments, sizeof arguments, " %u", size);
    return ask_mask("nvmlDeviceGetCpuAffinity", device, arguments, size, mask);
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    unsigned long long number;
    nvmlReturn_t code = ask_numbers("nvmlDeviceGetNumaNodeId", device, "", &number, 1);
    if (code == NVML_SUCCESS)
        *node = (unsigned int)number;
    return code;
}

nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode)
{
    unsigned long long number;
    if (mode->version != nvmlDeviceAddressingMode_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = ask_numbers("nvmlDeviceGetAddressingMode", device, "", &number, 1);
    if (code == NVML_SUCCESS)
        mode->value = (unsigned int)number;
    return code;
}

/* Both versions have one layout; only the new driver knows the second. */
nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_t *platform)
{
    char values[MAX_ANSWER], serial[17];
#ifdef NEW_DRIVER
    const unsigned int known = nvmlPlatformInfo_v2;
#else
    const unsigned int known = nvmlPlatformInfo_v1;
#endif
    if (platform->version != known)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = ask_device("nvmlDeviceGetPlatformInfo", device, "", values);
    if (code != NVML_SUCCESS)
        return code;
    if (sscanf(values, "%16s %hhu %hhu %hhu %hhu %hhu", serial, &platform->slotNumber,
               &platform->trayIndex, &platform->hostId, &platform->peerType,
               &platform->moduleId) != 6)
        return NVML_ERROR_UNKNOWN;
    memset(platform->ibGuid, 0x5A, sizeof platform->ibGuid);
    memset(platform->chassisSerialNumber, 0, sizeof platform->chassisSerialNumber);
    memcpy(platform->chassisSerialNumber, serial, strlen(serial));
    return NVML_SUCCESS;
}
#endif

/* ---- fabric: three structures, each of which only some drivers know ---- */

struct membership {
    unsigned char cluster[NVML_GPU_FABRIC_UUID_LEN];
    unsigned int clique, state, status, mask, summary;
};

static nvmlReturn_t ask_fabric(nvmlDevice_t device, struct membership *fabric)
{
    char values[MAX_ANSWER], cluster[33];
    nvmlReturn_t code = ask_device("nvmlDeviceGetGpuFabricInfoV", device, "", values);
    if (code != NVML_SUCCESS)
        return code;
    if (sscanf(values, "%32s %u %u %u %u %u", cluster, &fabric->clique, &fabric->state,
               &fabric->status, &fabric->mask, &fabric->summary) != 6)
        return NVML_ERROR_UNKNOWN;
    for (int i = 0; i < NVML_GPU_FABRIC_UUID_LEN; i++)
        sscanf(cluster + 2 * i, "%2hhx", &fabric->cluster[i]);
    return NVML_SUCCESS;
}

#define TAKE(TARGET, FABRIC)                                                                      \
    do {                                                                                          \
        memcpy((TARGET)->clusterUuid, (FABRIC).cluster, sizeof (FABRIC).cluster);                 \
        (TARGET)->cliqueId = (FABRIC).clique;                                                     \
        (TARGET)->state = (nvmlGpuFabricState_t)(FABRIC).state;                                   \
        (TARGET)->status = (nvmlReturn_t)(FABRIC).status;                                         \
    } while (0)

#ifdef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    struct membership fabric;
    nvmlReturn_t code = ask_fabric(device, &fabric);
    if (code == NVML_SUCCESS)
        TAKE(info, fabric);
    return code;
}
#else
/* The second version of the structure is the third without its end. */
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
    struct membership fabric;
    int newest = 0;
#ifdef NEW_DRIVER
    newest = info->version == nvmlGpuFabricInfo_v3;
#endif
    if (!newest && info->version != nvmlGpuFabricInfo_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = ask_fabric(device, &fabric);
    if (code != NVML_SUCCESS)
        return code;
    TAKE(info, fabric);
    info->healthMask = fabric.mask;
    if (newest)
        info->healthSummary = (unsigned char)fabric.summary;
    return NVML_SUCCESS;
}
#endif
