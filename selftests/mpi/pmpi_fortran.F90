! SPDX-License-Identifier: GPL-2.0-only
!
! Collectives of MPI called from Fortran, under the preload library; compiled three times, with the names by mpif.h, by
! use mpi (USE_MPI), and by use mpi_f08 (USE_F08). Persistent ones are in MPI 4, or (MPIX) in an extension of Open MPI's.
! All ranks know what the results must be. Rank 0 prints TAP.
! pmpi.sh runs it, and looks at what the library says it has offloaded.
#ifdef USE_F08
#define REQUEST type(MPI_Request)
#define STATUS type(MPI_Status) :: status
#define DATATYPE type(MPI_Datatype)
#define COMM type(MPI_Comm)
#else
#define REQUEST integer
#define STATUS integer :: status(MPI_STATUS_SIZE)
#define DATATYPE integer
#define COMM integer
#endif
#ifdef MPIX
#define ALLREDUCE_INIT MPIX_Allreduce_init
#define GATHER_INIT MPIX_Gather_init
#define BARRIER_INIT MPIX_Barrier_init
#define GATHERV_INIT MPIX_Gatherv_init
#define SCATTERV_INIT MPIX_Scatterv_init
#define ALLTOALLV_INIT MPIX_Alltoallv_init
#define ALLTOALLW_INIT MPIX_Alltoallw_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#define GATHER_INIT MPI_Gather_init
#define BARRIER_INIT MPI_Barrier_init
#define GATHERV_INIT MPI_Gatherv_init
#define SCATTERV_INIT MPI_Scatterv_init
#define ALLTOALLV_INIT MPI_Alltoallv_init
#define ALLTOALLW_INIT MPI_Alltoallw_init
#endif
program pmpi_fortran
#if defined(USE_F08)
  use mpi_f08
#ifdef MPIX
  use mpi_f08_ext
#endif
#elif defined(USE_MPI)
  use mpi
#endif
  implicit none
#if !defined(USE_F08) && !defined(USE_MPI)
  include 'mpif.h'
#endif
  integer, parameter :: n = 1000, messages = 50, long = 20000
  integer :: rank, nranks, error, i, r, number = 0
  ! MPI writes to them while other calls are made.
  integer, asynchronous :: token
  logical :: failed = .false., done
  character(len=8) :: argument
  integer :: level
  STATUS
  integer, allocatable, asynchronous :: one(:), all(:), room(:)
  integer, allocatable :: counts(:), displs(:)
  double precision, allocatable, asynchronous :: v(:), s(:)
  REQUEST :: requests(6)
  integer, asynchronous :: prefix, before
  DATATYPE, allocatable :: types(:)
  COMM :: own

  call get_command_argument(1, argument)
  if (argument == 'threads') then
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, level, error)
  else
    call MPI_Init(error)
  end if
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, error)
  allocate (one(n), all(n*nranks), counts(nranks), displs(nranks), v(n), s(n), types(nranks))
  if (rank == 0) print '(a)', '1..9'

  ! Sums of whole numbers are exact in any order.
  v = [(dble(i + rank), i=1, n)]
  s = -1
  call MPI_Allreduce(v, s, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. all_equal(s, [(dble(i*nranks + nranks*(nranks - 1)/2), i=1, n)]))
  call MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. all_equal(v, [(dble(i + nranks - 1), i=1, n)]))
  v = rank
  ! In place to another root, MPICH 4.0 crashes itself.
  if (rank == 0) then
    call MPI_Reduce(MPI_IN_PLACE, v, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
  else
    call MPI_Reduce(v, s, n, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
  end if
  call check(error == MPI_SUCCESS .and. (rank > 0 .or. all_equal(v, spread(dble(nranks*(nranks - 1)/2), 1, n))))
  all = rank
  call MPI_Reduce_scatter_block(all, one, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. maxval(one) == nranks*(nranks - 1)/2 .and. minval(one) == maxval(one))
  call MPI_Scan(rank, token, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. token == rank*(rank + 1)/2)
  token = 0
  call MPI_Exscan(rank, token, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. token == rank*(rank - 1)/2)
  call report('reductions')

  one = 0
  if (rank == 0) one = [(7*i, i=1, n)]
  call MPI_Bcast(one, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. sum(one) == 7*n*(n + 1)/2)
  one = rank
  all = -1
  call MPI_Allgather(one, n, MPI_INTEGER, all, n, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. gathered())
  all = -1
  all(rank*n + 1:(rank + 1)*n) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. gathered())
  counts = n
  counts(nranks) = n - 1
  displs = [(i*n, i=0, nranks - 1)]
  all = nranks - 1
  call MPI_Allgatherv(one, counts(rank + 1), MPI_INTEGER, all, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. gathered())
  all = [((10*rank + r, i=1, n), r=0, nranks - 1)]
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. all(nranks*n) == 10*(nranks - 1) + rank .and. all(1) == rank)
  call report('movements')

  all = -1
  call MPI_Gather(one, n, MPI_INTEGER, all, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. (rank > 0 .or. gathered()))
  all = [((r, i=1, n), r=0, nranks - 1)]
  one = -1
  if (rank == 0) then
    call MPI_Scatter(all, n, MPI_INTEGER, MPI_IN_PLACE, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    one = 0
  else
    call MPI_Scatter(all, n, MPI_INTEGER, one, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  end if
  call check(error == MPI_SUCCESS .and. maxval(one) == rank .and. minval(one) == rank)
  call report('gather and scatter')

  call MPI_Comm_dup(MPI_COMM_WORLD, own, error)
  call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, nranks), 5, own, requests(1), error)
  call MPI_Barrier(own, error)
  done = .false.
  do while (.not. done)
    call MPI_Iprobe(MPI_ANY_SOURCE, 5, own, done, status, error)
    call check(error == MPI_SUCCESS)
  end do
  call MPI_Recv(token, 1, MPI_INTEGER, MPI_ANY_SOURCE, 5, own, status, error)
  call check(error == MPI_SUCCESS .and. token == mod(rank + nranks - 1, nranks))
  call MPI_Wait(requests(1), status, error)
  call MPI_Comm_free(own, error)
  call check(error == MPI_SUCCESS .and. own == MPI_COMM_NULL)
  call report('a communicator of its own')

  ! Each rank's share of all has its number; the last one is shorter.
  one = rank
  all = nranks - 1
  call MPI_Gatherv(one, counts(rank + 1), MPI_INTEGER, all, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. (rank > 0 .or. gathered()))
  all = [((r, i=1, n), r=0, nranks - 1)]
  one = rank
  if (rank == 0) then
    call MPI_Scatterv(all, counts, displs, MPI_INTEGER, MPI_IN_PLACE, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  else
    one(1:counts(rank + 1)) = -1
    call MPI_Scatterv(all, counts, displs, MPI_INTEGER, one, counts(rank + 1), MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  end if
  call check(error == MPI_SUCCESS .and. maxval(one) == rank .and. minval(one) == rank)
  counts = n
  counts(rank + 1) = n - 1
  all = [((10*rank + r, i=1, n), r=0, nranks - 1)]
  call MPI_Alltoallv(MPI_IN_PLACE, counts, displs, MPI_INTEGER, all, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. exchanged())
  types = MPI_INTEGER
  displs = 4*displs
  all = [((10*rank + r, i=1, n), r=0, nranks - 1)]
  call MPI_Alltoallw(MPI_IN_PLACE, counts, displs, types, all, counts, displs, types, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. exchanged())
  call report('gatherv, scatterv, alltoallv, alltoallw')

  ! Beside a message, in one array.
  v = [(dble(i + rank), i=1, n)]
  all = -1
  call MPI_Iallreduce(v, s, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, requests(1), error)
  call MPI_Igather(one, n, MPI_INTEGER, all, n, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(2), error)
  call MPI_Irecv(token, 1, MPI_INTEGER, mod(rank + nranks - 1, nranks), 1, MPI_COMM_WORLD, requests(3), error)
  call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, nranks), 1, MPI_COMM_WORLD, requests(4), error)
  before = 0
  call MPI_Iscan(rank, prefix, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(5), error)
  call MPI_Iexscan(rank, before, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(6), error)
  done = .false.
  ! With MPI_STATUS_IGNORE Open MPI's says that nothing is ever done.
  do while (.not. done)
    call MPI_Request_get_status(requests(1), done, status, error)
  end do
  call MPI_Waitall(6, requests, MPI_STATUSES_IGNORE, error)
  call check(prefix == rank*(rank + 1)/2 .and. before == rank*(rank - 1)/2)
  call check(error == MPI_SUCCESS .and. token == mod(rank + nranks - 1, nranks))
  call check(all_equal(s, [(dble(i*nranks + nranks*(nranks - 1)/2), i=1, n)]) .and. (rank > 0 .or. gathered()))
  call report('nonblocking, and MPI_Waitall')

  ! As the blocking ones above; the last rank's share is shorter.
  counts = n
  counts(nranks) = n - 1
  displs = [(i*n, i=0, nranks - 1)]
  one = rank
  all = nranks - 1
  call MPI_Igatherv(one, counts(rank + 1), MPI_INTEGER, all, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call check(error == MPI_SUCCESS .and. (rank > 0 .or. gathered()))
  all = [((r, i=1, n), r=0, nranks - 1)]
  if (rank == 0) then
    call MPI_Iscatterv(all, counts, displs, MPI_INTEGER, MPI_IN_PLACE, n, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1), error)
  else
    one(1:counts(rank + 1)) = -1
    call MPI_Iscatterv(all, counts, displs, MPI_INTEGER, one, counts(rank + 1), MPI_INTEGER, 0, MPI_COMM_WORLD, &
                       requests(1), error)
  end if
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call check(error == MPI_SUCCESS .and. maxval(one) == rank .and. minval(one) == rank)
  counts = n
  counts(rank + 1) = n - 1
  all = [((10*rank + r, i=1, n), r=0, nranks - 1)]
  call MPI_Ialltoallv(MPI_IN_PLACE, counts, displs, MPI_INTEGER, all, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, &
                      requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call check(error == MPI_SUCCESS .and. exchanged())
  displs = 4*displs
  all = [((10*rank + r, i=1, n), r=0, nranks - 1)]
  call MPI_Ialltoallw(MPI_IN_PLACE, counts, displs, types, all, counts, displs, types, MPI_COMM_WORLD, requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call check(error == MPI_SUCCESS .and. exchanged())
  call report('nonblocking gatherv, scatterv, alltoallv, alltoallw')

  ! Persistent messages: the functions that start and free them are the library's, too.
  call MPI_Recv_init(token, 1, MPI_INTEGER, mod(rank + nranks - 1, nranks), 2, MPI_COMM_WORLD, requests(1), error)
  call MPI_Send_init(rank, 1, MPI_INTEGER, mod(rank + 1, nranks), 2, MPI_COMM_WORLD, requests(2), error)
  do i = 1, 3
    token = -1
    ! With threads MPICH takes its own requests, which it cannot cancel.
    if (i == 2 .and. argument /= 'threads') then
      call MPI_Start(requests(1), error)
      call MPI_Start(requests(2), error)
    else
      call MPI_Startall(2, requests, error)
    end if
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
    call check(error == MPI_SUCCESS .and. token == mod(rank + nranks - 1, nranks))
  end do
  call MPI_Request_free(requests(1), error)
  call MPI_Request_free(requests(2), error)
  call check(error == MPI_SUCCESS .and. requests(1) == MPI_REQUEST_NULL .and. requests(2) == MPI_REQUEST_NULL)
  allocate (room(messages*(long + 1000)))
  call MPI_Buffer_attach(room, 4*size(room), error)
  call start_before_it_has_left(requests(1))
  call report('persistent messages')

  all = rank
  call ALLREDUCE_INIT(v, s, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), error)
  call BARRIER_INIT(MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), error)
  if (rank == 0) then
    call GATHER_INIT(MPI_IN_PLACE, n, MPI_INTEGER, all, n, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, requests(3), error)
  else
    call GATHER_INIT(all, n, MPI_INTEGER, all, n, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, requests(3), error)
  end if
  do i = 1, 5
    v = i*(rank + 1)
    if (rank == 0) all(n + 1:) = -1
    ! With threads MPICH takes its own requests, which it cannot cancel.
    if (i == 2 .and. argument /= 'threads') then
      call MPI_Start(requests(1), error)
      call MPI_Start(requests(2), error)
      call MPI_Start(requests(3), error)
      call MPI_Cancel(requests(1), error)
      call MPI_Cancel(requests(3), error)
      call check(error == MPI_SUCCESS)
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE, error)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
      call MPI_Wait(requests(3), MPI_STATUS_IGNORE, error)
    else
      call MPI_Startall(3, requests, error)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, error)
    end if
    call check(error == MPI_SUCCESS .and. all_equal(s, spread(dble(i*nranks*(nranks + 1)/2), 1, n)))
    if (rank == 0) call check(gathered())
  end do
  call start_before_it_has_left(requests(4))
  call MPI_Request_free(requests(1), error)
  call MPI_Request_free(requests(2), error)
  call MPI_Request_free(requests(3), error)
  call check(error == MPI_SUCCESS .and. requests(1) == MPI_REQUEST_NULL .and. requests(2) == MPI_REQUEST_NULL)

  all = [((10*rank + r, i=1, n), r=0, nranks - 1)]
  call ALLTOALLW_INIT(MPI_IN_PLACE, counts, displs, types, all, counts, displs, types, MPI_COMM_WORLD, MPI_INFO_NULL, &
                      requests(1), error)
  call start_and_wait()
  call check(exchanged())
  displs = displs/4
  all = [((10*rank + r, i=1, n), r=0, nranks - 1)]
  call ALLTOALLV_INIT(MPI_IN_PLACE, counts, displs, MPI_INTEGER, all, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, &
                      MPI_INFO_NULL, requests(1), error)
  call start_and_wait()
  call check(exchanged())
  counts = n
  counts(nranks) = n - 1
  one = rank
  all = nranks - 1
  call GATHERV_INIT(one, counts(rank + 1), MPI_INTEGER, all, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD, &
                    MPI_INFO_NULL, requests(1), error)
  call start_and_wait()
  call check(rank > 0 .or. gathered())
  all = [((r, i=1, n), r=0, nranks - 1)]
  one(1:counts(rank + 1)) = -1
  call SCATTERV_INIT(all, counts, displs, MPI_INTEGER, one, counts(rank + 1), MPI_INTEGER, 0, MPI_COMM_WORLD, &
                     MPI_INFO_NULL, requests(1), error)
  call start_and_wait()
  call check(maxval(one) == rank .and. minval(one) == rank)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call report('persistent collectives')
  call MPI_Finalize(error)
contains
  pure logical function all_equal(a, b)
    double precision, intent(in) :: a(:), b(:)
    all_equal = maxval(abs(a - b)) < 0.5d0
  end function

  ! Each rank's share of all has its number.
  pure logical function gathered()
    integer :: k
    gathered = .true.
    do k = 0, nranks - 1
      gathered = gathered .and. minval(all(k*n + 1:(k + 1)*n)) == k .and. maxval(all(k*n + 1:(k + 1)*n)) == k
    end do
  end function

  ! Each rank has told the others its number, and theirs.
  pure logical function exchanged()
    integer :: k
    exchanged = .true.
    do k = 0, nranks - 1
      exchanged = exchanged .and. all(k*n + 1) == 10*k + rank .and. all((k + 1)*n - 1) == 10*k + rank
    end do
  end function

  ! The first request, which is freed then.
  subroutine start_and_wait()
    call check(error == MPI_SUCCESS)
    call MPI_Start(requests(1), error)
    call check(error == MPI_SUCCESS)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    call check(error == MPI_SUCCESS)
    call MPI_Request_free(requests(1), error)
    call check(error == MPI_SUCCESS)
  end subroutine

  ! A message that is buffered is complete at once, but does not leave before it is received: Open MPI then replaces the
  ! request when it is started again. The buffer is detached when MPI ends.
  subroutine start_before_it_has_left(request)
    REQUEST :: request, array(1)
    integer, asynchronous :: vector(long)
    call MPI_Bsend_init(vector, long, MPI_INTEGER, mod(rank + 1, nranks), 3, MPI_COMM_WORLD, request, error)
    call check(error == MPI_SUCCESS)
    do i = 1, messages
      vector = i
      if (mod(i, 2) == 0) then
        call MPI_Start(request, error)
      else
        array(1) = request
        call MPI_Startall(1, array, error)
        request = array(1)
      end if
      call check(error == MPI_SUCCESS)
      call MPI_Wait(request, MPI_STATUS_IGNORE, error)
      call check(error == MPI_SUCCESS)
    end do
    call MPI_Request_free(request, error)
    call check(error == MPI_SUCCESS .and. request == MPI_REQUEST_NULL)
    call PMPI_Barrier(MPI_COMM_WORLD, error)
    do i = 1, messages
      vector = -1
      call MPI_Recv(vector, long, MPI_INTEGER, mod(rank + nranks - 1, nranks), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      call check(error == MPI_SUCCESS .and. minval(vector) == i .and. maxval(vector) == i)
    end do
  end subroutine

  subroutine check(good)
    logical, intent(in) :: good
    if (.not. good) failed = .true.
  end subroutine

  ! Some Fortran interfaces call MPI by other names for these than programs do, and some by the same.
  subroutine report(name)
    character(*), intent(in) :: name
    integer :: faults
    call PMPI_Allreduce(merge(1, 0, failed), faults, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    failed = .false.
    number = number + 1
    if (rank == 0) print '(a, i0, a)', trim(merge('not ok ', 'ok     ', faults > 0))//' ', number, ' '//name
  end subroutine
end program
