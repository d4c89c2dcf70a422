/* The timed wait of C11, in which librdkafka waits, by that of POSIX.

   libfaketime turns the faked time of pthread_cond_timedwait into the real one, and does not know
   cnd_timedwait: there a clock a day ahead would wait for a day. In glibc both have one condition.
   */
#include <errno.h>
#include <pthread.h>
#include <threads.h>

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
    int error = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);

    return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}
