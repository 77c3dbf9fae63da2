/* The two binary interfaces of MPI that mpi4py's wheels know: that of MPICH (also of Intel MPI,
 * MVAPICH and Cray MPICH) and that of Open MPI.
 *
 * The wheels of both install their mpi.h at the same place, so that of one of them is gone
 * where both are installed, and a computer with an MPI need not have its headers. What the recorder
 * needs is small and does not change: these are the interfaces that programs are linked with.
 * OPEN_MPI is defined for Open MPI. */

#ifndef BSP_RECORD_ABI_H
#define BSP_RECORD_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef ptrdiff_t MPI_Aint;
typedef long long MPI_Count;
typedef long long MPI_Offset;

#ifdef OPEN_MPI

typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_group_t *MPI_Group;
typedef struct ompi_datatype_t *MPI_Datatype;
typedef struct ompi_op_t *MPI_Op;
typedef struct ompi_request_t *MPI_Request;
typedef struct ompi_message_t *MPI_Message;
typedef struct ompi_win_t *MPI_Win;
typedef struct ompi_file_t *MPI_File;
typedef struct ompi_info_t *MPI_Info;
typedef struct ompi_errhandler_t *MPI_Errhandler;
typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR, cancelled;
    size_t count;
} MPI_Status;

extern char ompi_mpi_comm_world[], ompi_mpi_comm_self[], ompi_mpi_comm_null[];
extern char ompi_request_null[], ompi_mpi_byte[], ompi_mpi_datatype_null[], ompi_mpi_info_null[];
#define MPI_COMM_WORLD ((MPI_Comm)ompi_mpi_comm_world)
#define MPI_COMM_SELF ((MPI_Comm)ompi_mpi_comm_self)
#define MPI_COMM_NULL ((MPI_Comm)ompi_mpi_comm_null)
#define MPI_REQUEST_NULL ((MPI_Request)ompi_request_null)
#define MPI_DATATYPE_NULL ((MPI_Datatype)ompi_mpi_datatype_null)
#define MPI_BYTE ((MPI_Datatype)ompi_mpi_byte)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_IN_PLACE ((void *)1)
enum { MPI_ANY_SOURCE = -1, MPI_PROC_NULL = -2, MPI_ROOT = -4 };
enum { MPI_CART = 1, MPI_GRAPH = 2, MPI_DIST_GRAPH = 3, MPI_COMM_TYPE_SHARED = 0 };
#define MPI_INFO_NULL ((MPI_Info)ompi_mpi_info_null)
enum { MPI_LOCK_EXCLUSIVE = 1 };

#else

typedef int MPI_Comm;
typedef int MPI_Group;
typedef int MPI_Datatype;
typedef int MPI_Op;
typedef int MPI_Request;
typedef int MPI_Message;
typedef int MPI_Win;
typedef struct ADIOI_FileD *MPI_File;
typedef int MPI_Info;
typedef int MPI_Errhandler;
typedef struct {
    int count_low, count_high_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;

#define MPI_COMM_WORLD ((MPI_Comm)0x44000000)
#define MPI_COMM_SELF ((MPI_Comm)0x44000001)
#define MPI_COMM_NULL ((MPI_Comm)0x04000000)
#define MPI_REQUEST_NULL ((MPI_Request)0x2c000000)
#define MPI_DATATYPE_NULL ((MPI_Datatype)0x0c000000)
#define MPI_BYTE ((MPI_Datatype)0x4c00010d)
#define MPI_STATUS_IGNORE ((MPI_Status *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)1)
#define MPI_IN_PLACE ((void *)-1)
enum { MPI_ANY_SOURCE = -2, MPI_PROC_NULL = -1, MPI_ROOT = -3 };
enum { MPI_GRAPH = 1, MPI_CART = 2, MPI_DIST_GRAPH = 3, MPI_COMM_TYPE_SHARED = 1 };
#define MPI_INFO_NULL ((MPI_Info)0x1c000000)
enum { MPI_LOCK_EXCLUSIVE = 234 };

#endif

enum { MPI_SUCCESS = 0, MPI_ANY_TAG = -1, MPI_UNDEFINED = -32766 };

/* What the recorder itself calls. */
int PMPI_Comm_size(MPI_Comm, int *);
int PMPI_Comm_rank(MPI_Comm, int *);
int PMPI_Comm_remote_size(MPI_Comm, int *);
int PMPI_Comm_test_inter(MPI_Comm, int *);
int PMPI_Comm_group(MPI_Comm, MPI_Group *);
int PMPI_Comm_remote_group(MPI_Comm, MPI_Group *);
int PMPI_Group_translate_ranks(MPI_Group, int, const int *, MPI_Group, int *);
int PMPI_Group_free(MPI_Group *);
int PMPI_Topo_test(MPI_Comm, int *);
int PMPI_Cartdim_get(MPI_Comm, int *);
int PMPI_Cart_shift(MPI_Comm, int, int, int *, int *);
int PMPI_Graph_neighbors_count(MPI_Comm, int, int *);
int PMPI_Graph_neighbors(MPI_Comm, int, int, int *);
int PMPI_Dist_graph_neighbors_count(MPI_Comm, int *, int *, int *);
int PMPI_Dist_graph_neighbors(MPI_Comm, int, int *, int *, int, int *, int *);
int PMPI_Type_size_x(MPI_Datatype, MPI_Count *);
int PMPI_Get_elements_x(const MPI_Status *, MPI_Datatype, MPI_Count *);
int PMPI_Test_cancelled(const MPI_Status *, int *);
int PMPI_Get_library_version(char *, int *);
int PMPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int PMPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int PMPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
int PMPI_Comm_free(MPI_Comm *);

#endif
