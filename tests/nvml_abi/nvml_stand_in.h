/* A libnvidia-ml.so.1 for machines without a GPU: it speaks NVML's ABI and answers from a text file.
 *
 * The file named by SEEDANCE_NVML_STATE has one line for each call, in the words of the boundary
 * `seedance_obs.sources.nvml.library`, and is read again whenever it is replaced:
 *
 *   nvmlDeviceGetPowerUsage gpu0 = 0 254000           code, then the values
 *   nvmlDeviceGetClockInfo gpu0 1 = 0 1980            the arguments follow the device
 *   nvmlDeviceGetName gpu0/mig2 = 0 NVIDIA H100 ...   text runs to the end of the line
 *   nvmlDeviceGetFieldValues gpu0 82 = 0 0 1 61       each field: its own code, type and value
 *   nvmlDeviceGetP2PStatus gpu0 3 1 = 0 0             towards gpu3, of capability 1
 *   nvmlDeviceGetComputeRunningProcesses gpu0 = 0 1 4711:1073741824:-:-
 *   nvmlDeviceGetProcessUtilization gpu0 0 = 0 1 4711:1700000000166666:93:52:0:0
 *                                                     all samples; the call leaves out the older
 *   nvmlDeviceGetVgpuUtilization gpu0 0 = 0 1 3001:1700000000166666:93:52:0:0
 *   nvmlVgpuInstanceGetUUID - 3001 = 0 c0ffee00-...   asked of a vGPU, not of a device
 *   nvmlGpmSampleGet gpu0 = 0 3 0:47.5 2:930 20:11900
 *                                                     seconds under 0, then what each metric has
 *                                                     come to; `nvmlGpmMigSampleGet gpu0 2` alike
 *   nvmlEventSetWait - 0 = 0 gpu3 79                  the first event, the second is "- 1"
 *   nvmlDeviceGetUUID gpu7 = hang                     the call never returns
 *
 * A call without a line is NOT_SUPPORTED. OLD_DRIVER and NEW_DRIVER leave out the symbols that
 * drivers of those generations do not have.
 */

#ifndef NVML_STAND_IN_H
#define NVML_STAND_IN_H

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

enum { MAX_BOARDS = 32, MAX_INSTANCES = 16, MAX_ANSWER = 65536, MAX_KEY = 128 };

struct nvmlDevice_st {
    unsigned int board;
    int instance; /* -1: the board itself */
    char name[24];
};

/* Each asks the state file for one call: its code, and what stands after it. */
nvmlReturn_t ask(const char *key, char *values);
nvmlReturn_t ask_system(const char *function, char *values);
nvmlReturn_t ask_device(const char *function, nvmlDevice_t device, const char *arguments,
                        char *values);
nvmlReturn_t ask_numbers(const char *function, nvmlDevice_t device, const char *arguments,
                         unsigned long long *numbers, int count);

/* The items of a list "2 4711:1:2 4712:3:4" one by one; NULL after the last. */
nvmlReturn_t ask_list(const char *function, nvmlDevice_t device, const char *arguments,
                      char *values, unsigned int *count);
char *next_item(char **position);

nvmlReturn_t take_numbers(const char *values, unsigned long long *numbers, int count);
nvmlReturn_t copy_text(const char *text, char *target, unsigned int length);

extern int open_samples; /* of GPM, allocated and not freed */
extern int references; /* how often nvmlInit was called without nvmlShutdown */

#endif
