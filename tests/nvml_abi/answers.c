/* The answers of devices. Two spellings of a function read the same line of the state file. */

#define _GNU_SOURCE
#include "nvml_stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(NAME)                                                                                \
    nvmlReturn_t NAME(nvmlDevice_t device, char *text, unsigned int length)                       \
    {                                                                                             \
        char values[MAX_ANSWER];                                                                  \
        nvmlReturn_t code = ask_device(#NAME, device, "", values);                                \
        return code == NVML_SUCCESS ? copy_text(values, text, length) : code;                     \
    }

TEXT(nvmlDeviceGetName)
TEXT(nvmlDeviceGetUUID)
TEXT(nvmlDeviceGetSerial)
TEXT(nvmlDeviceGetVbiosVersion)

#define NUMBER_OF(NAME, ASKED, TYPE)                                                              \
    nvmlReturn_t NAME(nvmlDevice_t device, TYPE *value)                                           \
    {                                                                                             \
        unsigned long long number;                                                                \
        nvmlReturn_t code = ask_numbers(ASKED, device, "", &number, 1);                           \
        if (code == NVML_SUCCESS)                                                                 \
            *value = (TYPE)number;                                                                \
        return code;                                                                              \
    }

#define NUMBER(NAME, TYPE) NUMBER_OF(NAME, #NAME, TYPE)

#define NUMBER_WITH(NAME, ARGUMENT, TYPE)                                                         \
    nvmlReturn_t NAME(nvmlDevice_t device, ARGUMENT argument, TYPE *value)                        \
    {                                                                                             \
        unsigned long long number;                                                                \
        char arguments[16];                                                                       \
        snprintf(arguments, sizeof arguments, " %u", (unsigned int)argument);                     \
        nvmlReturn_t code = ask_numbers(#NAME, device, arguments, &number, 1);                    \
        if (code == NVML_SUCCESS)                                                                 \
            *value = (TYPE)number;                                                                \
        return code;                                                                              \
    }

NUMBER(nvmlDeviceGetMinorNumber, unsigned int)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned int)
NUMBER(nvmlDeviceGetPowerUsage, unsigned int)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned int)
NUMBER_OF(nvmlDeviceGetPowerManagementLimit, "nvmlDeviceGetEnforcedPowerLimit", unsigned int)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long)
NUMBER(nvmlDeviceGetPerformanceState, nvmlPstates_t)
NUMBER(nvmlDeviceGetFanSpeed, unsigned int)
NUMBER(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned int)
NUMBER(nvmlDeviceGetGpuInstanceId, unsigned int)
NUMBER(nvmlDeviceGetComputeInstanceId, unsigned int)
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned int)
NUMBER_WITH(nvmlDeviceGetPcieThroughput, nvmlPcieUtilCounter_t, unsigned int)
NUMBER_WITH(nvmlDeviceGetClockInfo, nvmlClockType_t, unsigned int)
NUMBER_WITH(nvmlDeviceGetMaxClockInfo, nvmlClockType_t, unsigned int)
NUMBER_WITH(nvmlDeviceGetNvLinkVersion, unsigned int, unsigned int)
NUMBER_WITH(nvmlDeviceGetNvLinkState, unsigned int, nvmlEnableState_t)
NUMBER_WITH(nvmlDeviceGetNvLinkRemoteDeviceType, unsigned int, nvmlIntNvLinkDeviceType_t)

#ifndef OLD_DRIVER
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long)
#endif
#ifndef NEW_DRIVER
NUMBER_OF(nvmlDeviceGetCurrentClocksThrottleReasons, "nvmlDeviceGetCurrentClocksEventReasons",
          unsigned long long)
NUMBER_WITH(nvmlDeviceGetTemperature, nvmlTemperatureSensors_t, unsigned int)
#endif

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    unsigned long long number;
    char arguments[16];
    if (temperature->version != nvmlTemperature_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    snprintf(arguments, sizeof arguments, " %u", (unsigned int)temperature->sensorType);
    nvmlReturn_t code = ask_numbers("nvmlDeviceGetTemperature", device, arguments, &number, 1);
    if (code == NVML_SUCCESS)
        temperature->temperature = (int)number;
    return code;
}
#endif

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                         nvmlEccCounterType_t counter, unsigned long long *count)
{
    char arguments[32];
    snprintf(arguments, sizeof arguments, " %u %u", (unsigned int)error, (unsigned int)counter);
    return ask_numbers("nvmlDeviceGetTotalEccErrors", device, arguments, count, 1);
}

#define TWO_NUMBERS(NAME, TYPE)                                                                   \
    nvmlReturn_t NAME(nvmlDevice_t device, TYPE *first, TYPE *second)                             \
    {                                                                                             \
        unsigned long long numbers[2];                                                            \
        nvmlReturn_t code = ask_numbers(#NAME, device, "", numbers, 2);                           \
        if (code == NVML_SUCCESS) {                                                               \
            *first = (TYPE)numbers[0];                                                            \
            *second = (TYPE)numbers[1];                                                           \
        }                                                                                         \
        return code;                                                                              \
    }

TWO_NUMBERS(nvmlDeviceGetCudaComputeCapability, int)
TWO_NUMBERS(nvmlDeviceGetEncoderUtilization, unsigned int)
TWO_NUMBERS(nvmlDeviceGetDecoderUtilization, unsigned int)
TWO_NUMBERS(nvmlDeviceGetMigMode, unsigned int)

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    unsigned long long numbers[2];
    nvmlReturn_t code = ask_numbers("nvmlDeviceGetUtilizationRates", device, "", numbers, 2);
    if (code == NVML_SUCCESS)
        *rates = (nvmlUtilization_t){(unsigned int)numbers[0], (unsigned int)numbers[1]};
    return code;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    unsigned long long numbers[3];
    nvmlReturn_t code = ask_numbers("nvmlDeviceGetMemoryInfo", device, "", numbers, 3);
    if (code == NVML_SUCCESS)
        *memory = (nvmlMemory_t){.total = numbers[0], .free = numbers[1], .used = numbers[2]};
    return code;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    unsigned long long numbers[4];
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = ask_numbers("nvmlDeviceGetMemoryInfo_v2", device, "", numbers, 4);
    if (code == NVML_SUCCESS)
        *memory = (nvmlMemory_v2_t){memory->version, numbers[0], numbers[1], numbers[2],
                                    numbers[3]};
    return code;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable,
                                       unsigned int *uncorrectable, unsigned int *pending,
                                       unsigned int *failed)
{
    unsigned long long numbers[4];
    nvmlReturn_t code = ask_numbers("nvmlDeviceGetRemappedRows", device, "", numbers, 4);
    if (code == NVML_SUCCESS) {
        *correctable = (unsigned int)numbers[0];
        *uncorrectable = (unsigned int)numbers[1];
        *pending = (unsigned int)numbers[2];
        *failed = (unsigned int)numbers[3];
    }
    return code;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    unsigned long long numbers[9];
    nvmlReturn_t code = ask_numbers("nvmlDeviceGetAttributes_v2", device, "", numbers, 9);
    if (code == NVML_SUCCESS) {
        unsigned int *counts = (unsigned int *)attributes;
        for (int i = 0; i < 8; i++)
            counts[i] = (unsigned int)numbers[i];
        attributes->memorySizeMB = numbers[8];
    }
    return code;
}
