/* The state file: reading it, finding the line of a call, taking its values apart. */

#define _GNU_SOURCE
#include "nvml_stand_in.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int references;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *state;
static struct stat state_stamp;

static int is_current(const struct stat *stamp)
{
    return state != NULL && stamp->st_ino == state_stamp.st_ino &&
           stamp->st_size == state_stamp.st_size &&
           stamp->st_mtim.tv_sec == state_stamp.st_mtim.tv_sec &&
           stamp->st_mtim.tv_nsec == state_stamp.st_mtim.tv_nsec;
}

static void read_state(void)
{
    const char *path = getenv("SEEDANCE_NVML_STATE");
    FILE *file = path == NULL ? NULL : fopen(path, "rb");
    struct stat stamp;
    if (file == NULL) {
        fprintf(stderr, "nvml stand-in: cannot read the file named by SEEDANCE_NVML_STATE\n");
        abort();
    }
    if (fstat(fileno(file), &stamp) == 0 && !is_current(&stamp)) {
        free(state);
        state = calloc(1, (size_t)stamp.st_size + 2);
        state[0] = '\n'; /* so that every line starts after a newline */
        size_t length = fread(state + 1, 1, (size_t)stamp.st_size, file);
        state[1 + length] = '\0';
        state_stamp = stamp;
    }
    fclose(file);
}

/* The text right of "key = ", cut at the end of its line, into `answer`; 0 when there is none. */
static int find_line(const char *key, char *answer)
{
    char start[MAX_KEY + 8];
    int length = snprintf(start, sizeof start, "\n%s = ", key);
    pthread_mutex_lock(&lock);
    read_state();
    const char *line = strstr(state, start);
    if (line != NULL) {
        line += length;
        snprintf(answer, MAX_ANSWER, "%.*s", (int)strcspn(line, "\n"), line);
    }
    pthread_mutex_unlock(&lock);
    return line != NULL;
}

/* The code of a call, and in `values` the text after it; a call that hangs stays here. */
nvmlReturn_t ask(const char *key, char *values)
{
    char answer[MAX_ANSWER];
    char *rest;
    values[0] = '\0';
    if (!find_line(key, answer))
        return NVML_ERROR_NOT_SUPPORTED;
    if (strcmp(answer, "hang") == 0)
        for (;;)
            pause();
    nvmlReturn_t code = (nvmlReturn_t)strtoul(answer, &rest, 10);
    snprintf(values, MAX_ANSWER, "%s", *rest == ' ' ? rest + 1 : rest);
    return code;
}

nvmlReturn_t ask_device(const char *function, nvmlDevice_t device, const char *arguments,
                               char *values)
{
    char key[MAX_KEY];
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(key, sizeof key, "%s %s%s", function, device->name, arguments);
    return ask(key, values);
}

nvmlReturn_t ask_system(const char *function, char *values)
{
    char key[MAX_KEY];
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    snprintf(key, sizeof key, "%s -", function);
    return ask(key, values);
}

nvmlReturn_t take_numbers(const char *values, unsigned long long *numbers, int count)
{
    for (int i = 0; i < count; i++) {
        char *rest;
        numbers[i] = strtoull(values, &rest, 10);
        if (rest == values)
            return NVML_ERROR_UNKNOWN;
        values = rest;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t ask_numbers(const char *function, nvmlDevice_t device, const char *arguments,
                                unsigned long long *numbers, int count)
{
    char values[MAX_ANSWER];
    nvmlReturn_t code = ask_device(function, device, arguments, values);
    return code == NVML_SUCCESS ? take_numbers(values, numbers, count) : code;
}

nvmlReturn_t ask_list(const char *function, nvmlDevice_t device, const char *arguments,
                      char *values, unsigned int *count)
{
    char *items;
    nvmlReturn_t code = ask_device(function, device, arguments, values);
    if (code != NVML_SUCCESS)
        return code;
    *count = (unsigned int)strtoul(values, &items, 10);
    memmove(values, items, strlen(items) + 1);
    return NVML_SUCCESS;
}

char *next_item(char **position)
{
    return strtok_r(NULL, " ", position);
}

nvmlReturn_t copy_text(const char *text, char *target, unsigned int length)
{
    if (strlen(text) + 1 > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(target, text);
    return NVML_SUCCESS;
}
