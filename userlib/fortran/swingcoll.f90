! SPDX-License-Identifier: LGPL-2.1-or-later
!
! libswingcoll for Fortran 2018: communicators, blocking and non-blocking collectives, errors. swingcoll.h describes
! what the calls do; here is only what differs. Agreement and growth of communicators, partitioned,
! overlapped and sparse collectives (but for SWINGCOLL_SPARSE_AUTO), bootstraps and io_uring of the caller's
! own, and the registration of memory are for C.
!
! Functions return 0 or a negative errno, which swingcoll_strerror() explains. Buffers are of any type and rank. They
! must be contiguous (else -EINVAL), and count is that of elements. The same variable may be both buffers where the C
! interface allows it in place; it must then have the TARGET attribute. Buffers of a non-blocking collective have the
! attributes TARGET and ASYNCHRONOUS in the scope that starts it and waits for it.
!
! Fortran does not tell SWINGCOLL_REDUCE from swingcoll_reduce, so the constants of enum swingcoll_coll are not here.
module swingcoll
  use, intrinsic :: iso_c_binding
  implicit none
  private

  ! The build compares these with swingcoll.h and with the kernel's header: constants.sh.
  integer(c_int), parameter, public :: SWINGCOLL_VERSION_MAJOR = 0
  integer(c_int), parameter, public :: SWINGCOLL_VERSION_MINOR = 1
  integer(c_int), parameter, public :: SWINGCOLL_VERSION_PATCH = 0
  integer(c_int), parameter, public :: SWINGCOLL_ID_BYTES = 16

  ! Element types.
  integer(c_int), parameter, public :: SWINGCOLL_I8 = 0
  integer(c_int), parameter, public :: SWINGCOLL_U8 = 1
  integer(c_int), parameter, public :: SWINGCOLL_I16 = 2
  integer(c_int), parameter, public :: SWINGCOLL_U16 = 3
  integer(c_int), parameter, public :: SWINGCOLL_I32 = 4
  integer(c_int), parameter, public :: SWINGCOLL_U32 = 5
  integer(c_int), parameter, public :: SWINGCOLL_I64 = 6
  integer(c_int), parameter, public :: SWINGCOLL_U64 = 7
  integer(c_int), parameter, public :: SWINGCOLL_F16 = 8
  integer(c_int), parameter, public :: SWINGCOLL_BF16 = 9
  integer(c_int), parameter, public :: SWINGCOLL_F32 = 10
  integer(c_int), parameter, public :: SWINGCOLL_F64 = 11

  ! Reductions.
  integer(c_int), parameter, public :: SWINGCOLL_SUM = 0
  integer(c_int), parameter, public :: SWINGCOLL_PROD = 1
  integer(c_int), parameter, public :: SWINGCOLL_MIN = 2
  integer(c_int), parameter, public :: SWINGCOLL_MAX = 3
  integer(c_int), parameter, public :: SWINGCOLL_AVG = 4
  integer(c_int), parameter, public :: SWINGCOLL_BAND = 5
  integer(c_int), parameter, public :: SWINGCOLL_BOR = 6
  integer(c_int), parameter, public :: SWINGCOLL_BXOR = 7

  ! Flags of options; add them up. NO_DEADLINE is for op_timeout_ms.
  integer(c_int32_t), parameter, public :: SWINGCOLL_ANY_USER = 1
  integer(c_int32_t), parameter, public :: SWINGCOLL_ALLOW_REORDER = 2
  integer(c_int32_t), parameter, public :: SWINGCOLL_URGENT = 4
  integer(c_int32_t), parameter, public :: SWINGCOLL_TRY_URGENT = 65536
  integer(c_int32_t), parameter, public :: SWINGCOLL_SPARSE_AUTO = 131072
  integer(c_int32_t), parameter, public :: SWINGCOLL_EAGER = 262144
  integer(c_int32_t), parameter, public :: SWINGCOLL_NO_DEADLINE = -1

  integer(c_int), parameter :: EINPROGRESS = 115
  integer(c_int), parameter :: EINVAL = 22

  type, public :: swingcoll_comm
    private
    type(c_ptr) :: at = c_null_ptr
  end type swingcoll_comm

  ! A collective in flight; done, and of no more use, after swingcoll_wait() or a swingcoll_test() that says so.
  type, public :: swingcoll_req
    private
    type(c_ptr) :: at = c_null_ptr
  end type swingcoll_req

  type, bind(c), public :: swingcoll_id
    integer(c_signed_char) :: bytes(SWINGCOLL_ID_BYTES) = 0_c_signed_char
  end type swingcoll_id

  ! Zero, and texts that are not allocated: the defaults.
  type, public :: swingcoll_comm_opts
    integer(c_int32_t) :: timeout_ms = 0
    integer(c_int32_t) :: flags = 0
    character(:), allocatable :: algo
    integer(c_int64_t) :: slot_max = 0
    integer(c_int32_t) :: use_io_uring = 0
    character(:), allocatable :: topo
    character(:), allocatable :: tuning
    integer(c_int32_t) :: op_timeout_ms = 0
  end type swingcoll_comm_opts

  type, public :: swingcoll_result
    integer(c_int) :: error = 0
    integer(c_int) :: culprit = -1 ! rank at fault, or -1
    integer(c_int64_t) :: time_ns = 0
    character(:), allocatable :: algo
  end type swingcoll_result

  ! The structs of swingcoll.h; coll_fortran.f90 of the selftests compares their layout.
  type, bind(c), public :: swingcoll_c_opts
    integer(c_int32_t) :: timeout_ms = 0
    integer(c_int32_t) :: flags = 0
    type(c_ptr) :: algo = c_null_ptr
    integer(c_int64_t) :: slot_max = 0
    integer(c_int32_t) :: use_io_uring = 0
    integer(c_int32_t) :: reserved0 = 0
    type(c_ptr) :: topo = c_null_ptr
    type(c_ptr) :: tuning = c_null_ptr
    type(c_funptr) :: progress = c_null_funptr
    type(c_ptr) :: progress_arg = c_null_ptr
    integer(c_int32_t) :: op_timeout_ms = 0
    integer(c_int32_t) :: reserved(3) = 0
  end type swingcoll_c_opts

  type, bind(c), public :: swingcoll_c_result
    integer(c_int) :: error = 0
    integer(c_int) :: culprit = -1
    integer(c_int64_t) :: time_ns = 0
    type(c_ptr) :: algo = c_null_ptr
  end type swingcoll_c_result

  type :: text_copies
    character(:), allocatable :: algo, topo, tuning
  end type text_copies

  public :: swingcoll_version, swingcoll_strerror, swingcoll_comm_failed, swingcoll_bootstrap_error
  public :: swingcoll_unique_id
  public :: swingcoll_comm_create, swingcoll_comm_create_env, swingcoll_comm_create_auto
  public :: swingcoll_comm_destroy, swingcoll_comm_abort, swingcoll_comm_shrink
  public :: swingcoll_comm_rank, swingcoll_comm_size, swingcoll_comm_nodes, swingcoll_comm_rank_node
  public :: swingcoll_comm_error, swingcoll_comm_algo
  public :: swingcoll_allreduce, swingcoll_reduce_scatter, swingcoll_allgather, swingcoll_broadcast
  public :: swingcoll_reduce, swingcoll_barrier, swingcoll_alltoall
  public :: swingcoll_gather, swingcoll_gatherv, swingcoll_scatter, swingcoll_scatterv
  public :: swingcoll_iallreduce, swingcoll_ireduce_scatter, swingcoll_iallgather, swingcoll_ibroadcast
  public :: swingcoll_ireduce, swingcoll_ibarrier, swingcoll_ialltoall
  public :: swingcoll_igather, swingcoll_igatherv, swingcoll_iscatter, swingcoll_iscatterv
  public :: swingcoll_wait, swingcoll_test

  interface
    function c_version() bind(c, name='swingcoll_version') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_strerror(error) bind(c, name='swingcoll_strerror') result(text)
      import :: c_int, c_ptr
      integer(c_int), value :: error
      type(c_ptr) :: text
    end function

    pure function c_comm_failed(error) bind(c, name='swingcoll_comm_failed') result(failed)
      import :: c_bool, c_int
      integer(c_int), value :: error
      logical(c_bool) :: failed
    end function

    function c_bootstrap_error() bind(c, name='swingcoll_bootstrap_error') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_unique_id(id) bind(c, name='swingcoll_unique_id') result(error)
      import :: c_int, swingcoll_id
      type(swingcoll_id), intent(out) :: id
      integer(c_int) :: error
    end function

    function c_create(comm, id, nranks, rank, opts) bind(c, name='swingcoll_comm_create') result(error)
      import :: c_int, c_ptr, swingcoll_id, swingcoll_c_opts
      type(c_ptr), intent(out) :: comm
      type(swingcoll_id), intent(in) :: id
      integer(c_int), value :: nranks, rank
      type(swingcoll_c_opts), intent(in) :: opts
      integer(c_int) :: error
    end function

    function c_create_env(comm, opts) bind(c, name='swingcoll_comm_create_env') result(error)
      import :: c_int, c_ptr, swingcoll_c_opts
      type(c_ptr), intent(out) :: comm
      type(swingcoll_c_opts), intent(in) :: opts
      integer(c_int) :: error
    end function

    function c_create_auto(comm, opts) bind(c, name='swingcoll_comm_create_auto') result(error)
      import :: c_int, c_ptr, swingcoll_c_opts
      type(c_ptr), intent(out) :: comm
      type(swingcoll_c_opts), intent(in) :: opts
      integer(c_int) :: error
    end function

    function c_destroy(comm) bind(c, name='swingcoll_comm_destroy') result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: error
    end function

    function c_abort(comm) bind(c, name='swingcoll_comm_abort') result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: error
    end function

    function c_shrink(comm, exclude, nexclude, out) bind(c, name='swingcoll_comm_shrink') result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), intent(in) :: exclude(*)
      integer(c_int), value :: nexclude
      type(c_ptr), intent(out) :: out
      integer(c_int) :: error
    end function

    pure function c_rank(comm) bind(c, name='swingcoll_comm_rank') result(rank)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: rank
    end function

    pure function c_size(comm) bind(c, name='swingcoll_comm_size') result(nranks)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: nranks
    end function

    pure function c_nodes(comm) bind(c, name='swingcoll_comm_nodes') result(nnodes)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: nnodes
    end function

    pure function c_rank_node(comm, rank) bind(c, name='swingcoll_comm_rank_node') result(node)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), value :: rank
      integer(c_int) :: node
    end function

    function c_error(comm, text, bytes, culprit) bind(c, name='swingcoll_comm_error') result(error)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: comm
      character(kind=c_char), intent(out) :: text(*)
      integer(c_size_t), value :: bytes
      integer(c_int), intent(out) :: culprit
      integer(c_int) :: error
    end function

    function c_algo(comm) bind(c, name='swingcoll_comm_algo') result(text)
      import :: c_ptr
      type(c_ptr), value :: comm
      type(c_ptr) :: text
    end function

    function c_allreduce(send, recv, count, dtype, op, comm) &
        bind(c, name='swingcoll_allreduce') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op
      integer(c_int) :: error
    end function

    function c_reduce_scatter(send, recv, count, dtype, op, comm) &
        bind(c, name='swingcoll_reduce_scatter') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op
      integer(c_int) :: error
    end function

    function c_allgather(send, recv, count, dtype, comm) &
        bind(c, name='swingcoll_allgather') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      integer(c_int) :: error
    end function

    function c_broadcast(send, recv, count, dtype, root, comm) &
        bind(c, name='swingcoll_broadcast') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_int) :: error
    end function

    function c_reduce(send, recv, count, dtype, op, root, comm) &
        bind(c, name='swingcoll_reduce') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op, root
      integer(c_int) :: error
    end function

    function c_alltoall(send, recv, count, dtype, comm) &
        bind(c, name='swingcoll_alltoall') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      integer(c_int) :: error
    end function

    function c_gather(send, recv, count, dtype, root, comm) &
        bind(c, name='swingcoll_gather') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_int) :: error
    end function

    function c_gatherv(send, recv, counts, dtype, root, comm) &
        bind(c, name='swingcoll_gatherv') result(error)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: send, recv, comm
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), value :: dtype, root
      integer(c_int) :: error
    end function

    function c_scatter(send, recv, count, dtype, root, comm) &
        bind(c, name='swingcoll_scatter') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_int) :: error
    end function

    function c_scatterv(send, recv, counts, dtype, root, comm) &
        bind(c, name='swingcoll_scatterv') result(error)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: send, recv, comm
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), value :: dtype, root
      integer(c_int) :: error
    end function

    function c_barrier(comm) bind(c, name='swingcoll_barrier') result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: error
    end function

    function c_iallreduce(send, recv, count, dtype, op, comm, req) &
        bind(c, name='swingcoll_iallreduce') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_ireduce_scatter(send, recv, count, dtype, op, comm, req) &
        bind(c, name='swingcoll_ireduce_scatter') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_iallgather(send, recv, count, dtype, comm, req) &
        bind(c, name='swingcoll_iallgather') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_ibroadcast(send, recv, count, dtype, root, comm, req) &
        bind(c, name='swingcoll_ibroadcast') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_ireduce(send, recv, count, dtype, op, root, comm, req) &
        bind(c, name='swingcoll_ireduce') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op, root
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_ialltoall(send, recv, count, dtype, comm, req) &
        bind(c, name='swingcoll_ialltoall') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_igather(send, recv, count, dtype, root, comm, req) &
        bind(c, name='swingcoll_igather') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_igatherv(send, recv, counts, dtype, root, comm, req) &
        bind(c, name='swingcoll_igatherv') result(error)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: send, recv, comm
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), value :: dtype, root
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_iscatter(send, recv, count, dtype, root, comm, req) &
        bind(c, name='swingcoll_iscatter') result(error)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: send, recv, comm
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_iscatterv(send, recv, counts, dtype, root, comm, req) &
        bind(c, name='swingcoll_iscatterv') result(error)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: send, recv, comm
      integer(c_int64_t), intent(in) :: counts(*)
      integer(c_int), value :: dtype, root
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_ibarrier(comm, req) bind(c, name='swingcoll_ibarrier') result(error)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      type(c_ptr), intent(out) :: req
      integer(c_int) :: error
    end function

    function c_wait(req, res) bind(c, name='swingcoll_wait') result(error)
      import :: c_int, c_ptr, swingcoll_c_result
      type(c_ptr), value :: req
      type(swingcoll_c_result), intent(out) :: res
      integer(c_int) :: error
    end function

    function c_test(req, res) bind(c, name='swingcoll_test') result(error)
      import :: c_int, c_ptr, swingcoll_c_result
      type(c_ptr), value :: req
      type(swingcoll_c_result), intent(in out) :: res
      integer(c_int) :: error
    end function

    function c_strlen(text) bind(c, name='strlen') result(n)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: n
    end function
  end interface

contains

  ! ---------------------------------------------------------------- texts

  function fortran_text(at) result(text)
    type(c_ptr), intent(in) :: at
    character(:), allocatable :: text
    character(kind=c_char), pointer :: chars(:)
    integer(c_size_t) :: i, n

    n = 0
    if (c_associated(at)) n = c_strlen(at)
    allocate(character(n) :: text)
    if (n == 0) return
    call c_f_pointer(at, chars, [n])
    do i = 1, n
      text(i:i) = chars(i)
    end do
  end function fortran_text

  ! Copied to memory that lives as long as the caller's allocatable, with the zero that C expects.
  subroutine c_text(text, copy, at)
    character(*), intent(in) :: text
    character(:), allocatable, target, intent(in out) :: copy
    type(c_ptr), intent(out) :: at

    copy = text // c_null_char
    at = c_loc(copy)
  end subroutine c_text

  function swingcoll_version() result(text)
    character(:), allocatable :: text

    text = fortran_text(c_version())
  end function swingcoll_version

  function swingcoll_strerror(error) result(text)
    integer(c_int), intent(in) :: error
    character(:), allocatable :: text

    text = fortran_text(c_strerror(error))
  end function swingcoll_strerror

  pure logical function swingcoll_comm_failed(error)
    integer(c_int), intent(in) :: error

    swingcoll_comm_failed = c_comm_failed(error)
  end function swingcoll_comm_failed

  function swingcoll_bootstrap_error() result(text)
    character(:), allocatable :: text

    text = fortran_text(c_bootstrap_error())
  end function swingcoll_bootstrap_error

  ! ---------------------------------------------------------------- communicators

  integer(c_int) function swingcoll_unique_id(id) result(error)
    type(swingcoll_id), intent(out) :: id

    error = c_unique_id(id)
  end function swingcoll_unique_id

  ! The copies hold the texts that the result points to.
  subroutine c_options(opts, copies, given)
    type(swingcoll_comm_opts), intent(in), optional :: opts
    type(text_copies), target, intent(in out) :: copies
    type(swingcoll_c_opts), intent(out) :: given

    if (.not. present(opts)) return
    given%timeout_ms = opts%timeout_ms
    given%flags = opts%flags
    given%slot_max = opts%slot_max
    given%use_io_uring = opts%use_io_uring
    given%op_timeout_ms = opts%op_timeout_ms
    if (allocated(opts%algo)) call c_text(opts%algo, copies%algo, given%algo)
    if (allocated(opts%topo)) call c_text(opts%topo, copies%topo, given%topo)
    if (allocated(opts%tuning)) call c_text(opts%tuning, copies%tuning, given%tuning)
  end subroutine c_options

  integer(c_int) function swingcoll_comm_create(comm, id, nranks, rank, opts) result(error)
    type(swingcoll_comm), intent(out) :: comm
    type(swingcoll_id), intent(in) :: id
    integer(c_int), intent(in) :: nranks, rank
    type(swingcoll_comm_opts), intent(in), optional :: opts
    type(text_copies), target :: copies
    type(swingcoll_c_opts) :: given

    call c_options(opts, copies, given)
    error = c_create(comm%at, id, nranks, rank, given)
  end function swingcoll_comm_create

  integer(c_int) function swingcoll_comm_create_env(comm, opts) result(error)
    type(swingcoll_comm), intent(out) :: comm
    type(swingcoll_comm_opts), intent(in), optional :: opts
    type(text_copies), target :: copies
    type(swingcoll_c_opts) :: given

    call c_options(opts, copies, given)
    error = c_create_env(comm%at, given)
  end function swingcoll_comm_create_env

  integer(c_int) function swingcoll_comm_create_auto(comm, opts) result(error)
    type(swingcoll_comm), intent(out) :: comm
    type(swingcoll_comm_opts), intent(in), optional :: opts
    type(text_copies), target :: copies
    type(swingcoll_c_opts) :: given

    call c_options(opts, copies, given)
    error = c_create_auto(comm%at, given)
  end function swingcoll_comm_create_auto

  integer(c_int) function swingcoll_comm_destroy(comm) result(error)
    type(swingcoll_comm), intent(in out) :: comm

    error = c_destroy(comm%at)
    comm%at = c_null_ptr
  end function swingcoll_comm_destroy

  integer(c_int) function swingcoll_comm_abort(comm) result(error)
    type(swingcoll_comm), intent(in) :: comm

    error = c_abort(comm%at)
  end function swingcoll_comm_abort

  ! An empty list, or none: the rank at fault of the last failure.
  integer(c_int) function swingcoll_comm_shrink(comm, smaller, exclude) result(error)
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_comm), intent(out) :: smaller
    integer(c_int), intent(in), optional :: exclude(:)

    if (present(exclude)) then
      error = c_shrink(comm%at, exclude, int(size(exclude), c_int), smaller%at)
    else
      error = c_shrink(comm%at, [integer(c_int) ::], 0_c_int, smaller%at)
    end if
  end function swingcoll_comm_shrink

  pure integer(c_int) function swingcoll_comm_rank(comm) result(rank)
    type(swingcoll_comm), intent(in) :: comm

    rank = c_rank(comm%at)
  end function swingcoll_comm_rank

  pure integer(c_int) function swingcoll_comm_size(comm) result(nranks)
    type(swingcoll_comm), intent(in) :: comm

    nranks = c_size(comm%at)
  end function swingcoll_comm_size

  ! Is there a count for each rank? Not without a communicator.
  pure logical function has_counts(counts, comm)
    integer(c_int64_t), intent(in) :: counts(:)
    type(swingcoll_comm), intent(in) :: comm

    has_counts = c_associated(comm%at)
    if (has_counts) has_counts = size(counts) == c_size(comm%at)
  end function has_counts

  pure integer(c_int) function swingcoll_comm_nodes(comm) result(nnodes)
    type(swingcoll_comm), intent(in) :: comm

    nnodes = c_nodes(comm%at)
  end function swingcoll_comm_nodes

  ! The node of a rank, from 0; -EINVAL if there is no such rank.
  pure integer(c_int) function swingcoll_comm_rank_node(comm, rank) result(node)
    type(swingcoll_comm), intent(in) :: comm
    integer(c_int), intent(in) :: rank

    node = c_rank_node(comm%at, rank)
  end function swingcoll_comm_rank_node

  ! The last failure's error, 0 if there was none.
  integer(c_int) function swingcoll_comm_error(comm, text, culprit) result(error)
    type(swingcoll_comm), intent(in) :: comm
    character(:), allocatable, intent(out), optional :: text
    integer(c_int), intent(out), optional :: culprit
    character(kind=c_char), target :: line(512)
    integer(c_int) :: rank

    line(1) = c_null_char
    error = c_error(comm%at, line, size(line, kind=c_size_t), rank)
    if (present(text)) text = fortran_text(c_loc(line))
    if (present(culprit)) culprit = rank
  end function swingcoll_comm_error

  function swingcoll_comm_algo(comm) result(text)
    type(swingcoll_comm), intent(in) :: comm
    character(:), allocatable :: text

    text = fortran_text(c_algo(comm%at))
  end function swingcoll_comm_algo

  ! ---------------------------------------------------------------- collectives

  integer(c_int) function swingcoll_allreduce(send, recv, count, dtype, op, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_allreduce(c_loc(send), c_loc(recv), count, dtype, op, comm%at)
  end function swingcoll_allreduce

  integer(c_int) function swingcoll_reduce_scatter(send, recv, count, dtype, op, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_reduce_scatter(c_loc(send), c_loc(recv), count, dtype, op, comm%at)
  end function swingcoll_reduce_scatter

  integer(c_int) function swingcoll_allgather(send, recv, count, dtype, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_allgather(c_loc(send), c_loc(recv), count, dtype, comm%at)
  end function swingcoll_allgather

  integer(c_int) function swingcoll_broadcast(send, recv, count, dtype, root, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_broadcast(c_loc(send), c_loc(recv), count, dtype, root, comm%at)
  end function swingcoll_broadcast

  integer(c_int) function swingcoll_reduce(send, recv, count, dtype, op, root, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op, root
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_reduce(c_loc(send), c_loc(recv), count, dtype, op, root, comm%at)
  end function swingcoll_reduce

  integer(c_int) function swingcoll_alltoall(send, recv, count, dtype, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_alltoall(c_loc(send), c_loc(recv), count, dtype, comm%at)
  end function swingcoll_alltoall

  integer(c_int) function swingcoll_gather(send, recv, count, dtype, root, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_gather(c_loc(send), c_loc(recv), count, dtype, root, comm%at)
  end function swingcoll_gather

  integer(c_int) function swingcoll_gatherv(send, recv, counts, dtype, root, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_int64_t), intent(in) :: counts(:)
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (.not. has_counts(counts, comm)) return
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_gatherv(c_loc(send), c_loc(recv), counts, dtype, root, comm%at)
  end function swingcoll_gatherv

  integer(c_int) function swingcoll_scatter(send, recv, count, dtype, root, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_scatter(c_loc(send), c_loc(recv), count, dtype, root, comm%at)
  end function swingcoll_scatter

  integer(c_int) function swingcoll_scatterv(send, recv, counts, dtype, root, comm) result(error)
    type(*), dimension(..), target :: send, recv
    integer(c_int64_t), intent(in) :: counts(:)
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm

    error = -EINVAL
    if (.not. has_counts(counts, comm)) return
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_scatterv(c_loc(send), c_loc(recv), counts, dtype, root, comm%at)
  end function swingcoll_scatterv

  integer(c_int) function swingcoll_barrier(comm) result(error)
    type(swingcoll_comm), intent(in) :: comm

    error = c_barrier(comm%at)
  end function swingcoll_barrier

  integer(c_int) function swingcoll_iallreduce(send, recv, count, dtype, op, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_iallreduce(c_loc(send), c_loc(recv), count, dtype, op, comm%at, req%at)
  end function swingcoll_iallreduce

  integer(c_int) function swingcoll_ireduce_scatter(send, recv, count, dtype, op, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_ireduce_scatter(c_loc(send), c_loc(recv), count, dtype, op, comm%at, req%at)
  end function swingcoll_ireduce_scatter

  integer(c_int) function swingcoll_iallgather(send, recv, count, dtype, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_iallgather(c_loc(send), c_loc(recv), count, dtype, comm%at, req%at)
  end function swingcoll_iallgather

  integer(c_int) function swingcoll_ibroadcast(send, recv, count, dtype, root, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_ibroadcast(c_loc(send), c_loc(recv), count, dtype, root, comm%at, req%at)
  end function swingcoll_ibroadcast

  integer(c_int) function swingcoll_ireduce(send, recv, count, dtype, op, root, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op, root
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_ireduce(c_loc(send), c_loc(recv), count, dtype, op, root, comm%at, req%at)
  end function swingcoll_ireduce

  integer(c_int) function swingcoll_ialltoall(send, recv, count, dtype, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_ialltoall(c_loc(send), c_loc(recv), count, dtype, comm%at, req%at)
  end function swingcoll_ialltoall

  integer(c_int) function swingcoll_igather(send, recv, count, dtype, root, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_igather(c_loc(send), c_loc(recv), count, dtype, root, comm%at, req%at)
  end function swingcoll_igather

  integer(c_int) function swingcoll_igatherv(send, recv, counts, dtype, root, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_int64_t), intent(in) :: counts(:)
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (.not. has_counts(counts, comm)) return
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_igatherv(c_loc(send), c_loc(recv), counts, dtype, root, comm%at, req%at)
  end function swingcoll_igatherv

  integer(c_int) function swingcoll_iscatter(send, recv, count, dtype, root, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_iscatter(c_loc(send), c_loc(recv), count, dtype, root, comm%at, req%at)
  end function swingcoll_iscatter

  integer(c_int) function swingcoll_iscatterv(send, recv, counts, dtype, root, comm, req) result(error)
    type(*), dimension(..), target, asynchronous :: send, recv
    integer(c_int64_t), intent(in) :: counts(:)
    integer(c_int), intent(in) :: dtype, root
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = -EINVAL
    if (.not. has_counts(counts, comm)) return
    if (is_contiguous(send) .and. is_contiguous(recv)) &
      error = c_iscatterv(c_loc(send), c_loc(recv), counts, dtype, root, comm%at, req%at)
  end function swingcoll_iscatterv

  integer(c_int) function swingcoll_ibarrier(comm, req) result(error)
    type(swingcoll_comm), intent(in) :: comm
    type(swingcoll_req), intent(out) :: req

    error = c_ibarrier(comm%at, req%at)
  end function swingcoll_ibarrier

  ! ---------------------------------------------------------------- completion

  subroutine fortran_result(from, res)
    type(swingcoll_c_result), intent(in) :: from
    type(swingcoll_result), intent(out), optional :: res

    if (.not. present(res)) return
    res%error = from%error
    res%culprit = from%culprit
    res%time_ns = from%time_ns
    res%algo = fortran_text(from%algo)
  end subroutine fortran_result

  ! The operation's error.
  integer(c_int) function swingcoll_wait(req, res) result(error)
    type(swingcoll_req), intent(in out) :: req
    type(swingcoll_result), intent(out), optional :: res
    type(swingcoll_c_result) :: from

    error = -EINVAL
    if (.not. c_associated(req%at)) return
    error = c_wait(req%at, from)
    req%at = c_null_ptr
    call fortran_result(from, res)
  end function swingcoll_wait

  ! 0 while the operation runs, and done is false; else its error, as of swingcoll_wait().
  integer(c_int) function swingcoll_test(req, done, res) result(error)
    type(swingcoll_req), intent(in out) :: req
    logical, intent(out) :: done
    type(swingcoll_result), intent(out), optional :: res
    type(swingcoll_c_result) :: from

    done = .true.
    error = -EINVAL
    if (.not. c_associated(req%at)) return
    error = c_test(req%at, from)
    if (error == -EINPROGRESS) then
      done = .false.
      error = 0
      return
    end if
    req%at = c_null_ptr
    call fortran_result(from, res)
  end function swingcoll_test
end module swingcoll
