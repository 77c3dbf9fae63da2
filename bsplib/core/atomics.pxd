# The functions of atomics.py in C. A compiled module takes these.

cimport cython
cimport numpy as cnp
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE,
)
from cpython.float cimport PyFloat_AsDouble, PyFloat_CheckExact, PyFloat_FromDouble
from cpython.long cimport PyLong_AsLongLong, PyLong_CheckExact, PyLong_FromLongLong

cdef extern from *:
    """
    #ifndef BSPLIB_ATOMICS
    #define BSPLIB_ATOMICS
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <linux/futex.h>
    #include <sched.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    #if defined(__x86_64__)
    #include <emmintrin.h>
    #endif

    typedef unsigned long long bsp_word;
    #define BSP_AT(a) ((bsp_word *) (uintptr_t) (a))
    #define bsp_load(a) __atomic_load_n(BSP_AT(a), __ATOMIC_ACQUIRE)
    #define bsp_store(a, v) __atomic_store_n(BSP_AT(a), (v), __ATOMIC_RELEASE)
    #define bsp_peek(a) (*BSP_AT(a))
    #define bsp_poke(a, v) (*BSP_AT(a) = (v))
    #define bsp_peek_half(a) (*(uint32_t *) (uintptr_t) (a))
    #define bsp_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
    #define bsp_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
    #define bsp_bits(v) (64 - __builtin_clzll(v))
    #if defined(__x86_64__)
    #define bsp_relax() __builtin_ia32_pause()
    #elif defined(__aarch64__)
    #define bsp_relax() __asm__ __volatile__("isb")
    #else
    #define bsp_relax() ((void) 0)
    #endif

    static inline long long bsp_clock(clockid_t clock) {
        struct timespec t;
        clock_gettime(clock, &t);
        return t.tv_sec * 1000000000LL + t.tv_nsec;
    }
    static inline long long bsp_rounded(double v) {  /* to even, as Python rounds */
        long long n = (long long) v;
        double rest = v - (double) n;
        if (rest > 0.5 || (rest == 0.5 && n & 1)) return n + 1;
        if (rest < -0.5 || (rest == -0.5 && n & 1)) return n - 1;
        return n;
    }
    /* What threading.get_ident() returns; there it begins the memory of the thread itself. */
    static inline bsp_word bsp_thread(void) {
    #if defined(__x86_64__) && defined(__linux__)
        bsp_word thread;
        __asm__("movq %%fs:0, %0" : "=r"(thread));
        return thread;
    #else
        return (bsp_word) PyThread_get_thread_ident();
    #endif
    }
    /* The C library copies more than 2 KiB and less than 1 MiB by one instruction, rep movsb, where
       a processor says that it is fast. On AMD's Zen 3 and Zen 4 it takes up to 17 times as long if
       the target begins 1 to 31 bytes behind the source modulo 4096. Pieces of 2 KiB are copied in
       another way, and take the time of other copies. */
    #if defined(__x86_64__)
    static __attribute__((noinline, unused)) void bsp_copy_in_pieces(
            char *to, const char *source, size_t nbytes) {
        while (nbytes > 0) {
            size_t piece = nbytes < 2048 ? nbytes : 2048;
            memcpy(to, source, piece);
            to += piece;
            source += piece;
            nbytes -= piece;
        }
    }
    #endif
    /* Target and source may overlap: a process may get a part of an array into another part of it.
       Pieces that are copied one after the other would then be read too late where the target
       begins inside of the source. */
    static inline void bsp_copy(void *to, const void *source, size_t nbytes) {
    #if defined(__x86_64__)
        uintptr_t behind = (uintptr_t) to - (uintptr_t) source;
        if (nbytes > 2048 && nbytes < 1 << 20 && 0 < behind % 4096 && behind % 4096 < 32
                && behind >= nbytes) {
            bsp_copy_in_pieces((char *) to, (const char *) source, nbytes);
            return;
        }
    #endif
        memmove(to, source, nbytes);
    }
    #if defined(__x86_64__)
    /* A copy by stores that do not go through the cache. The fence completes them before the next
       store, which may be the word that tells others of them. */
    static __attribute__((noinline, unused)) void bsp_stream(
            char *to, const char *source, size_t nbytes) {
        size_t before = -(uintptr_t) to % 64;
        memcpy(to, source, before);
        to += before;
        source += before;
        nbytes -= before;
        for (; nbytes >= 64; to += 64, source += 64, nbytes -= 64) {
            __m128i a = _mm_loadu_si128((const __m128i *) source);
            __m128i b = _mm_loadu_si128((const __m128i *) (source + 16));
            __m128i c = _mm_loadu_si128((const __m128i *) (source + 32));
            __m128i d = _mm_loadu_si128((const __m128i *) (source + 48));
            _mm_stream_si128((__m128i *) to, a);
            _mm_stream_si128((__m128i *) (to + 16), b);
            _mm_stream_si128((__m128i *) (to + 32), c);
            _mm_stream_si128((__m128i *) (to + 48), d);
        }
        memcpy(to, source, nbytes);
        _mm_sfence();
    }
    /* A large copy that others read. Memory that others have read lies in their caches, and a
       usual store has to take each line from there: 64 KiB take 7 us where two cores share a cache,
       28 us where they do not, and 1.2 us where the lines are in a cache of this core. Stores that
       do not go through the cache take 2 us everywhere, but then the reader takes 2 us more. The
       time of the first 4 KiB tells the cases apart: where they were copied at less than 20 GB/s,
       the rest is copied by such stores. */
    static __attribute__((noinline, unused)) void bsp_copy_large_out(
            char *to, const char *source, size_t nbytes) {
        const size_t first = 4096;
        const uintptr_t behind = (uintptr_t) to - (uintptr_t) source;
        long long began;
        if (behind < nbytes || -behind < nbytes) {  /* they overlap */
            memmove(to, source, nbytes);
            return;
        }
        began = bsp_clock(CLOCK_MONOTONIC);
        bsp_copy(to, source, first);
        if (bsp_clock(CLOCK_MONOTONIC) - began < 200)
            bsp_copy(to + first, source + first, nbytes - first);
        else
            bsp_stream(to + first, source + first, nbytes - first);
    }
    #endif
    static inline void bsp_copy_out(void *to, const void *source, size_t nbytes) {
    #if defined(__x86_64__)
        if (nbytes > 8192) {
            bsp_copy_large_out((char *) to, (const char *) source, nbytes);
            return;
        }
    #endif
        bsp_copy(to, source, nbytes);
    }
    #define bsp_now() bsp_clock(CLOCK_MONOTONIC)
    #define bsp_cpu() bsp_clock(CLOCK_THREAD_CPUTIME_ID)


    /* The lower half of a word, which a futex compares. */
    #if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define BSP_LOW(a) ((uint32_t *) (uintptr_t) (a))
    #else
    #define BSP_LOW(a) ((uint32_t *) (uintptr_t) (a) + 1)
    #endif
    static inline void bsp_sleep(bsp_word a, bsp_word value, long long ns) {
        struct timespec t = {ns / 1000000000LL, ns % 1000000000LL};
        syscall(SYS_futex, BSP_LOW(a), FUTEX_WAIT, (uint32_t) value, &t, 0, 0);
    }
    static inline void bsp_wake(bsp_word a) {
        __atomic_add_fetch(BSP_LOW(a), 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, BSP_LOW(a), FUTEX_WAKE, 1, 0, 0, 0);
    }
    #endif
    """
    ctypedef unsigned long long word "unsigned long long"
    word load "bsp_load"(word address) noexcept nogil
    void store "bsp_store"(word address, word value) noexcept nogil
    word peek "bsp_peek"(word address) noexcept nogil
    word peek_half "bsp_peek_half"(word address) noexcept nogil
    void poke "bsp_poke"(word address, word value) noexcept nogil
    void full_fence "bsp_fence"() noexcept nogil
    void compiler_fence "bsp_compiler_fence"() noexcept nogil
    void relax "bsp_relax"() noexcept nogil
    int give_way "sched_yield"() noexcept nogil
    word this_thread "bsp_thread"() noexcept nogil
    long long now_ns "bsp_now"() noexcept nogil
    long long cpu_ns "bsp_cpu"() noexcept nogil
    int bit_length "bsp_bits"(word value) noexcept nogil
    long long rounded "bsp_rounded"(double value) noexcept nogil
    void wake_up "bsp_wake"(word address) noexcept nogil
    void bsp_sleep(word a, word value, long long ns) noexcept nogil
    void bsp_copy(void *to, const void *source, size_t nbytes) noexcept nogil
    void bsp_copy_out(void *to, const void *source, size_t nbytes) noexcept nogil

cdef extern from *:
    """
    /* numpy's types of scalars; expanded where a module uses them, behind numpy's headers. */
    #define bsp_is_float64(o) PyArray_IsScalar((o), Float64)
    #define bsp_is_int64(o) PyArray_IsScalar((o), Int64)
    #define bsp_is_number(n) ((n) <= NPY_CLONGDOUBLE || (n) == NPY_HALF)
    #define bsp_form(a) (bsp_is_number(PyArray_TYPE(a)) && PyDataType_METADATA(PyArray_DESCR(a)) == NULL \\
        ? PyArray_TYPE(a) + 1 + (PyArray_ISNOTSWAPPED(a) ? 0 : 32) : 0)
    #define bsp_has_references(a) PyDataType_REFCHK(PyArray_DESCR(a))
    #define bsp_new_array(dtype, ndim, dims) \\
        (Py_INCREF(dtype), PyArray_NewFromDescr( \\
            &PyArray_Type, (PyArray_Descr *) (dtype), (ndim), (dims), NULL, NULL, 0, NULL))
    #define bsp_array_at(dtype, ndim, dims, data) \\
        (Py_INCREF(dtype), PyArray_NewFromDescr( \\
            &PyArray_Type, (PyArray_Descr *) (dtype), (ndim), (dims), NULL, (data), \\
            NPY_ARRAY_CARRAY_RO, NULL))
    #ifndef BSPLIB_FILLING
    #define BSPLIB_FILLING
    /* The elements of filler() in atomics.py, as often as they fit into a word. */
    static inline bsp_word bsp_pattern(char kind, bsp_word itemsize, int native) {
        if (kind == 'b') return 0x0101010101010101ULL;
        if (kind == 'U') return native ? 0x0000FFFD0000FFFDULL : 0xFDFF0000FDFF0000ULL;
        if (native && (kind == 'i' || kind == 'm' || kind == 'M')) {
            if (itemsize == 8) return 0x8000000000000000ULL;
            if (itemsize == 4) return 0x8000000080000000ULL;
            if (itemsize == 2) return 0x8000800080008000ULL;
            if (itemsize == 1) return 0x8080808080808080ULL;
        }
        return ~0ULL;
    }
    static inline void bsp_fill(char *data, bsp_word nbytes, bsp_word pattern) {
        bsp_word *words = (bsp_word *) data, count = nbytes / 8, n;
        for (n = 0; n < count; n++) words[n] = pattern;
        if (nbytes % 8) memcpy(words + count, &pattern, nbytes % 8);
    }
    static inline void bsp_fill_ends(char *data, bsp_word nbytes, bsp_word pattern) {
        bsp_word last = (nbytes - 64) & ~7ULL;
        if (nbytes <= 128) {
            bsp_fill(data, nbytes, pattern);
        } else {
            bsp_fill(data, 64, pattern);
            bsp_fill(data + last, nbytes - last, pattern);
        }
    }
    #endif
    #define bsp_fill_new(a) bsp_fill_ends(PyArray_BYTES(a), (bsp_word) PyArray_NBYTES(a), \\
        bsp_pattern(PyArray_DESCR(a)->kind, (bsp_word) PyArray_ITEMSIZE(a), PyArray_ISNOTSWAPPED(a)))
    """
    bint bsp_is_float64(object value) noexcept
    bint bsp_is_int64(object value) noexcept
    bint bsp_has_references(cnp.ndarray array) noexcept
    int form_of "bsp_form"(cnp.ndarray array) noexcept
    object bsp_new_array(object dtype, int ndim, cnp.npy_intp *dims)
    object bsp_array_at(object dtype, int ndim, cnp.npy_intp *dims, void *data)
    void fill_new "bsp_fill_new"(cnp.ndarray array) noexcept
    bint is_array "PyArray_CheckExact"(object value) noexcept
    word nbytes_of "PyArray_NBYTES"(cnp.ndarray array) noexcept
    word itemsize_of "PyArray_ITEMSIZE"(cnp.ndarray array) noexcept
    int ndim_of "PyArray_NDIM"(cnp.ndarray array) noexcept
    word length_of "PyArray_DIM"(cnp.ndarray array, int axis) noexcept
    Py_ssize_t stride_of "PyArray_STRIDE"(cnp.ndarray array, int axis) noexcept
    bint is_boolean "PyArray_ISBOOL"(cnp.ndarray array) noexcept
    bint is_packed "PyArray_IS_C_CONTIGUOUS"(cnp.ndarray array) noexcept
    bint is_writable "PyArray_ISWRITEABLE"(cnp.ndarray array) noexcept
    object packed "PyArray_GETCONTIGUOUS"(cnp.ndarray array)

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) noexcept

cdef enum:
    FLOAT = 1
    INTEGER = 2

cdef inline void copy(word to, word source, word nbytes) noexcept:
    bsp_copy(<void *> <size_t> to, <void *> <size_t> source, <size_t> nbytes)
cdef inline void copy_out(word to, word source, word nbytes) noexcept:
    bsp_copy_out(<void *> <size_t> to, <void *> <size_t> source, <size_t> nbytes)
cdef inline word wrapped(word value) noexcept:
    return value
cdef inline void sleep_while(word address, word value, long long nanoseconds) noexcept:
    with nogil:
        bsp_sleep(address, value, nanoseconds)

# -- arrays

cdef inline int prepare() except -1:
    cnp.import_array()
    return 0
cdef inline object base_of(cnp.ndarray array):
    cdef cnp.PyObject *base = cnp.PyArray_BASE(array)
    return None if base == NULL else <object> base
cdef inline word address_of(cnp.ndarray array) noexcept:
    return <word> <size_t> cnp.PyArray_DATA(array)
cdef inline bint owns_memory(cnp.ndarray array) noexcept:
    return cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_OWNDATA)
cdef inline bint is_of(cnp.ndarray array, object dtype) noexcept:
    return <void *> cnp.PyArray_DESCR(array) == <void *> dtype
cdef inline bint same_words(cnp.npy_intp *one, cnp.npy_intp *other, int count) noexcept:
    cdef int at  # there are few: a call of memcmp takes longer
    for at in range(count):
        if one[at] != other[at]:
            return False
    return True
cdef inline bint same_shape(cnp.ndarray one, cnp.ndarray other) noexcept:
    cdef int ndim = cnp.PyArray_NDIM(one)
    return ndim == cnp.PyArray_NDIM(other) and same_words(
        cnp.PyArray_DIMS(one), cnp.PyArray_DIMS(other), ndim)
cdef inline bint same_form(cnp.ndarray one, cnp.ndarray other) noexcept:
    return (
        cnp.PyArray_DESCR(one) == cnp.PyArray_DESCR(other)
        and cnp.PyArray_DATA(one) == cnp.PyArray_DATA(other)
        and same_shape(one, other)
        and same_words(
            cnp.PyArray_STRIDES(one), cnp.PyArray_STRIDES(other), cnp.PyArray_NDIM(one)))
cdef inline object new_like(cnp.ndarray array):
    return bsp_new_array(
        <object> <void *> cnp.PyArray_DESCR(array), cnp.PyArray_NDIM(array),
        cnp.PyArray_DIMS(array))
cdef inline object copied(cnp.ndarray array):
    cdef cnp.ndarray made
    if not cnp.PyArray_IS_C_CONTIGUOUS(array) or bsp_has_references(array):
        return cnp.PyArray_NewCopy(array, cnp.NPY_CORDER)
    made = new_like(array)
    bsp_copy(cnp.PyArray_DATA(made), cnp.PyArray_DATA(array), cnp.PyArray_NBYTES(array))
    return made

# -- numbers and bytes

cdef inline Py_ssize_t small_integer(object value) noexcept:
    cdef int overflow = 0
    cdef long long number
    if not PyLong_CheckExact(value):
        if not bsp_is_int64(value):
            return -1
        number = PyLong_AsLongLong(value)
    else:
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < 0 or number >> 62:
        return -1
    return <Py_ssize_t> number
cdef inline bint fits(int kind, object value) noexcept:
    cdef int overflow = 0
    if kind == FLOAT:
        return PyFloat_CheckExact(value) or bsp_is_float64(value)
    if kind == INTEGER:
        if PyLong_CheckExact(value):
            PyLong_AsLongLongAndOverflow(value, &overflow)
            return not overflow
        return bsp_is_int64(value)
    return False
cdef inline int write_number(word address, int kind, object value) except -1:
    if kind == FLOAT:
        (<double *> <size_t> address)[0] = PyFloat_AsDouble(value)
    else:
        (<long long *> <size_t> address)[0] = PyLong_AsLongLong(value)
    return 0
cdef inline bytes bytes_at(word address, word nbytes):
    cdef bytes made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> nbytes)
    bsp_copy(PyBytes_AS_STRING(made), <void *> <size_t> address, <size_t> nbytes)
    return made
cdef inline bytearray bytearray_at(word address, word nbytes):
    cdef bytearray made = PyByteArray_FromStringAndSize(NULL, <Py_ssize_t> nbytes)
    bsp_copy(PyByteArray_AS_STRING(made), <void *> <size_t> address, <size_t> nbytes)
    return made
cdef inline void write_bytes(word address, bytes data) noexcept:
    bsp_copy_out(<void *> <size_t> address, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
cdef inline object new_array(tuple shape, cnp.dtype dtype, bytes data):
    cdef cnp.npy_intp dims[64]
    cdef int axis, ndim = <int> len(shape)
    cdef cnp.ndarray made
    for axis in range(ndim):
        dims[axis] = shape[axis]
    made = bsp_new_array(dtype, ndim, dims)
    bsp_copy(cnp.PyArray_DATA(made), PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return made
cdef inline object array_at(tuple shape, cnp.dtype dtype, word address, word nbytes):
    cdef cnp.npy_intp dims[64]
    cdef int axis, ndim = <int> len(shape)
    for axis in range(ndim):
        dims[axis] = shape[axis]
    return bsp_array_at(dtype, ndim, dims, <void *> <size_t> address)
cdef inline object number_in(bytes data, int kind):
    if kind == FLOAT:
        return PyFloat_FromDouble((<double *> PyBytes_AS_STRING(data))[0])
    return PyLong_FromLongLong((<long long *> PyBytes_AS_STRING(data))[0])
