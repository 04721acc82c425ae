/* GPM: samples that the caller allocates, and metrics between two of them. */

#define _GNU_SOURCE
#include "nvml_stand_in.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int open_samples;

#ifndef OLD_DRIVER
enum { MAX_METRICS = 64 };

struct nvmlGpmSample_st {
    double seconds; /* when it was taken; 0: never */
    unsigned int count;
    unsigned int metrics[MAX_METRICS];
    double totals[MAX_METRICS];
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    unsigned long long number;
    if (support->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = ask_numbers("nvmlGpmQueryDeviceSupport", device, "", &number, 1);
    support->isSupportedDevice = code == NVML_SUCCESS && number;
    return code == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : code;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    *sample = calloc(1, sizeof **sample);
    if (*sample == NULL)
        return NVML_ERROR_MEMORY;
    open_samples++;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    free(sample);
    open_samples--;
    return NVML_SUCCESS;
}

static nvmlReturn_t take_sample(const char *function, nvmlDevice_t device, const char *arguments,
                                nvmlGpmSample_t sample)
{
    char values[MAX_ANSWER], *position = values, *item;
    unsigned int count;
    nvmlReturn_t code = ask_list(function, device, arguments, values, &count);
    if (code != NVML_SUCCESS)
        return code;
    memset(sample, 0, sizeof *sample);
    while ((item = next_item(&position)) != NULL && sample->count < MAX_METRICS) {
        unsigned int metric;
        double total;
        if (sscanf(item, "%u:%lf", &metric, &total) != 2)
            return NVML_ERROR_UNKNOWN;
        if (metric == 0)
            sample->seconds = total;
        else {
            sample->metrics[sample->count] = metric;
            sample->totals[sample->count++] = total;
        }
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    return take_sample("nvmlGpmSampleGet", device, "", sample);
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int instance, nvmlGpmSample_t sample)
{
    char arguments[16];
    snprintf(arguments, sizeof arguments, " %u", instance);
    return take_sample("nvmlGpmMigSampleGet", device, arguments, sample);
}

static const double *total_of(nvmlGpmSample_t sample, unsigned int metric)
{
    for (unsigned int i = 0; i < sample->count; i++)
        if (sample->metrics[i] == metric)
            return &sample->totals[i];
    return NULL;
}

/* No time between two samples makes a metric that is no number, as drivers have given. */
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *asked)
{
    if (asked->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (asked->sample1->seconds == 0 || asked->sample2->seconds < asked->sample1->seconds)
        return NVML_ERROR_INVALID_ARGUMENT;
    double seconds = asked->sample2->seconds - asked->sample1->seconds;
    for (unsigned int i = 0; i < asked->numMetrics; i++) {
        nvmlGpmMetric_t *metric = &asked->metrics[i];
        const double *before = total_of(asked->sample1, metric->metricId);
        const double *after = total_of(asked->sample2, metric->metricId);
        int known = before != NULL && after != NULL;
        metric->nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        metric->value = !known ? 1e300 : seconds == 0 ? NAN : (*after - *before) / seconds;
    }
    return NVML_SUCCESS;
}
#endif
