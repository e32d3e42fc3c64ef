! SPDX-License-Identifier: GPL-2.0-only
!
! The Fortran module: the layout of its structs, all of its collectives, texts and errors, by three processes. The build
! has compared the constants.
program coll_fortran
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use swingcoll
  implicit none

  interface
    subroutine layout_in_c(v) bind(c)
      import :: c_size_t
      integer(c_size_t), intent(out) :: v(*)
    end subroutine

    function fork_ranks(nranks) bind(c) result(rank)
      import :: c_int
      integer(c_int), value :: nranks
      integer(c_int) :: rank
    end function

    subroutine end_rank(status) bind(c)
      import :: c_int
      integer(c_int), value :: status
    end subroutine

    function wait_ranks() bind(c) result(bad)
      import :: c_int
      integer(c_int) :: bad
    end function
  end interface

  integer(c_int), parameter :: nranks = 3, einval = 22, econnaborted = 103
  type(swingcoll_id) :: id
  type(swingcoll_comm) :: comm
  type(swingcoll_comm_opts) :: opts
  type(swingcoll_req) :: req
  character(:), allocatable :: text
  integer(c_int) :: rank, error
  integer :: number = 0, failed = 0
  logical :: exists

  print '(a)', 'TAP version 13'
  inquire (file='/dev/swingcoll', exist=exists)
  if (.not. exists) then
    print '(a)', '1..0 # SKIP swingcoll is not loaded'
    stop 4
  end if
  print '(a)', '1..6'
  call result_of(same_layout(), 'structs are those of C')
  text = swingcoll_version()
  call result_of(index(text, '.') > 0, 'version: ' // text)
  text = swingcoll_strerror(-einval)
  call result_of(len(text) > 0 .and. swingcoll_comm_failed(-econnaborted) .and. .not. swingcoll_comm_failed(-einval), &
                 'errors: ' // text)

  ! comm is no communicator yet.
  error = swingcoll_gatherv(rank, number, [1_c_int64_t], SWINGCOLL_I32, 0, comm)
  if (error == -einval) error = swingcoll_scatterv(rank, number, [1_c_int64_t], SWINGCOLL_I32, 0, comm)
  if (error == -einval) error = swingcoll_igatherv(rank, number, [1_c_int64_t], SWINGCOLL_I32, 0, comm, req)
  if (error == -einval) error = swingcoll_iscatterv(rank, number, [1_c_int64_t], SWINGCOLL_I32, 0, comm, req)
  call result_of(error == -einval, 'calls without a communicator are refused')

  opts%algo = 'nothing'
  error = swingcoll_unique_id(id)
  if (error == 0) error = swingcoll_comm_create(comm, id, nranks, 0, opts)
  text = swingcoll_bootstrap_error()
  call result_of(error == -einval .and. index(text, 'nothing') > 0, 'a wrong option is named: ' // text)

  flush (6)
  rank = fork_ranks(nranks)
  if (rank >= 0) then
    call ranks(rank)
    call end_rank(0)
  end if
  call result_of(wait_ranks() == 0, 'collectives of three ranks')
  if (failed > 0) stop 1

contains

  subroutine result_of(good, name)
    logical, intent(in) :: good
    character(*), intent(in) :: name

    number = number + 1
    if (.not. good) failed = failed + 1
    print '(a, i0, 2a)', trim(merge('ok     ', 'not ok ', good)) // ' ', number, ' ', name
  end subroutine result_of

  logical function same_layout()
    type(swingcoll_c_opts), target :: o
    type(swingcoll_c_result), target :: r
    integer(c_size_t) :: in_c(12), here(12)

    call layout_in_c(in_c)
    here = [c_sizeof(o), between(c_loc(o%algo), c_loc(o)), between(c_loc(o%slot_max), c_loc(o)), &
            between(c_loc(o%use_io_uring), c_loc(o)), between(c_loc(o%topo), c_loc(o)), &
            between(c_loc(o%tuning), c_loc(o)), between(c_loc(o%op_timeout_ms), c_loc(o)), &
            c_sizeof(r), between(c_loc(r%culprit), c_loc(r)), between(c_loc(r%time_ns), c_loc(r)), &
            between(c_loc(r%algo), c_loc(r)), c_sizeof(id)]
    same_layout = all(in_c == here)
    if (.not. same_layout) print '(a, 12(1x, i0))', '# C:', in_c, '# Fortran:', here
  end function same_layout

  integer(c_size_t) function between(at, start)
    type(c_ptr), intent(in) :: at, start

    between = transfer(at, 0_c_size_t) - transfer(start, 0_c_size_t)
  end function between

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what

    if (good) return
    write (error_unit, '(a, i0, 2a)') '# rank ', rank, ': ', what
    call end_rank(1_c_int)
  end subroutine expect

  ! One rank; me counts from 0, so that the sum of me + 1 over the ranks is 6.
  subroutine ranks(me)
    integer(c_int), intent(in) :: me
    type(swingcoll_comm) :: smaller
    character(:), allocatable :: text
    integer(c_int) :: culprit, error

    opts = swingcoll_comm_opts(timeout_ms=120000)
    call expect(swingcoll_comm_create(comm, id, nranks, me, opts) == 0, 'create: ' // swingcoll_bootstrap_error())
    call expect(swingcoll_comm_rank(comm) == me .and. swingcoll_comm_size(comm) == nranks .and. &
                swingcoll_comm_nodes(comm) == 1 .and. swingcoll_comm_rank_node(comm, nranks - 1) == 0 .and. &
                swingcoll_comm_rank_node(comm, nranks) < 0, 'rank, size, nodes')
    call blocking(me)
    call nonblocking(me)
    call refused(me)

    error = swingcoll_comm_error(comm, text, culprit)
    call expect(error < 0 .and. len(text) > 0, 'the last error has a text')
    if (me < 2) then
      call expect(swingcoll_comm_shrink(comm, smaller, [2_c_int]) == 0, 'shrink')
      call expect(swingcoll_comm_size(smaller) == 2, 'size after shrink')
      call expect(swingcoll_barrier(smaller) == 0, 'barrier after shrink')
      call expect(swingcoll_comm_destroy(smaller) == 0, 'destroy')
    end if
    call expect(swingcoll_comm_destroy(comm) == 0, 'destroy')
  end subroutine ranks

  ! A result is looked at in a statement after the call: Fortran may evaluate the operands of .and. in any order.
  subroutine blocking(me)
    integer(c_int), intent(in) :: me
    integer(c_int) :: error
    real(c_float), target :: plane(300, 7)
    real(c_double) :: send(1000), recv(1000)
    integer(c_int64_t), target :: scalar
    integer(c_int32_t), target :: all_of(4 * nranks), mine(4), got(4)
    integer :: i

    plane = real(me + 1, c_float)
    error = swingcoll_allreduce(plane, plane, size(plane, kind=c_size_t), SWINGCOLL_F32, SWINGCOLL_SUM, comm)
    call expect(error == 0 .and. all(plane == 6), 'allreduce of a plane in place')
    send = [(real(i * (me + 1), c_double), i=1, 1000)]
    recv = 0
    error = swingcoll_allreduce(send, recv, 1000_c_size_t, SWINGCOLL_F64, SWINGCOLL_MAX, comm)
    call expect(error == 0 .and. all(recv == [(real(i * nranks, c_double), i=1, 1000)]), 'allreduce of two buffers')
    scalar = 10 + me
    error = swingcoll_allreduce(scalar, scalar, 1_c_size_t, SWINGCOLL_I64, SWINGCOLL_MIN, comm)
    call expect(error == 0 .and. scalar == 10, 'allreduce of a scalar')
    call expect(len(swingcoll_comm_algo(comm)) > 1, 'name of the algorithm')

    all_of = [(i + me, i=1, size(all_of))]
    error = swingcoll_reduce_scatter(all_of, got, 4_c_size_t, SWINGCOLL_I32, SWINGCOLL_SUM, comm)
    call expect(error == 0 .and. all(got == [(3 * (4 * me + i) + 3, i=1, 4)]), 'reduce_scatter')
    mine = [(100 * me + i, i=1, 4)]
    error = swingcoll_allgather(mine, all_of, 4_c_size_t, SWINGCOLL_I32, comm)
    call expect(error == 0 .and. all(all_of == [(100 * ((i - 1) / 4) + modulo(i - 1, 4) + 1, i=1, size(all_of))]), &
                'allgather')
    error = swingcoll_broadcast(mine, mine, 4_c_size_t, SWINGCOLL_I32, 1_c_int, comm)
    call expect(error == 0 .and. all(mine == [101, 102, 103, 104]), 'broadcast')
    mine = me + 1
    got = 0
    error = swingcoll_reduce(mine, got, 4_c_size_t, SWINGCOLL_I32, SWINGCOLL_PROD, 2_c_int, comm)
    call expect(error == 0 .and. all(got == merge(6, 0, me == 2)), 'reduce')
    all_of = [(100 * me + (i - 1) / 4, i=1, size(all_of))]
    error = swingcoll_alltoall(all_of, all_of, 4_c_size_t, SWINGCOLL_I32, comm)
    call expect(error == 0 .and. all(all_of == [(100 * ((i - 1) / 4) + me, i=1, size(all_of))]), 'alltoall in place')
    mine = [(10 * me + i, i=1, 4)]
    all_of = 0
    error = swingcoll_gather(mine, all_of, 4_c_size_t, SWINGCOLL_I32, 1_c_int, comm)
    call expect(error == 0 .and. all(all_of == merge([(10 * ((i - 1) / 4) + modulo(i - 1, 4) + 1, &
                                                       i=1, size(all_of))], 0, me == 1)), 'gather')
    mine = 0
    error = swingcoll_scatter(all_of, mine, 4_c_size_t, SWINGCOLL_I32, 1_c_int, comm)
    call expect(error == 0 .and. all(mine == [(10 * me + i, i=1, 4)]), 'scatter')
    got = 0
    error = swingcoll_scatterv(all_of, got, [(int(i, c_int64_t), i=1, nranks)], SWINGCOLL_I32, 1_c_int, comm)
    call expect(error == 0 .and. got(1) == merge(1, merge(2, 4, me == 1), me == 0), 'scatterv')
    error = swingcoll_gatherv(got, all_of, [1_c_int64_t], SWINGCOLL_I32, 1_c_int, comm)
    call expect(error == -einval, 'gatherv with too few counts')
    call expect(swingcoll_barrier(comm) == 0, 'barrier')
  end subroutine blocking

  subroutine nonblocking(me)
    integer(c_int), intent(in) :: me
    integer(c_int32_t), target, asynchronous :: a(15000), b(4 * nranks), c(4), d(4), e(4), f(4), g(4 * nranks)
    type(swingcoll_req) :: reqs(7)
    type(swingcoll_result) :: res
    integer(c_int) :: error
    integer :: i
    logical :: done

    a = me + 1
    b = [(i, i=1, size(b))]
    d = 7 + me
    e = me + 1
    f = 0
    g = [(100 * me + (i - 1) / 4, i=1, size(g))]
    call expect(swingcoll_iallreduce(a, a, size(a, kind=c_size_t), SWINGCOLL_I32, SWINGCOLL_SUM, comm, reqs(1)) == 0, &
                'iallreduce')
    call expect(swingcoll_ireduce_scatter(b, c, 4_c_size_t, SWINGCOLL_I32, SWINGCOLL_SUM, comm, reqs(2)) == 0, &
                'ireduce_scatter')
    call expect(swingcoll_ibroadcast(d, d, 4_c_size_t, SWINGCOLL_I32, 0_c_int, comm, reqs(3)) == 0, 'ibroadcast')
    call expect(swingcoll_ireduce(e, f, 4_c_size_t, SWINGCOLL_I32, SWINGCOLL_SUM, 0_c_int, comm, reqs(4)) == 0, &
                'ireduce')
    call expect(swingcoll_ialltoall(g, g, 4_c_size_t, SWINGCOLL_I32, comm, reqs(5)) == 0, 'ialltoall')
    call expect(swingcoll_ibarrier(comm, reqs(6)) == 0, 'ibarrier')

    error = swingcoll_wait(reqs(1), res)
    call expect(error == 0 .and. res%error == 0 .and. res%culprit == -1 .and. &
                res%time_ns > 0 .and. len(res%algo) > 1, 'wait and its result')
    do
      error = swingcoll_test(reqs(2), done)
      if (done) exit
    end do
    call expect(error == 0, 'test')
    do i = 3, 6
      call expect(swingcoll_wait(reqs(i)) == 0, 'wait')
    end do
    call expect(swingcoll_wait(reqs(1)) == -einval, 'a request that is done')
    call expect(all(a == 6) .and. all(c == [(3 * (4 * me + i), i=1, 4)]) .and. all(d == 7), 'sums and broadcast')
    call expect(all(f == merge(6, 0, me == 0)) .and. all(g == [(100 * ((i - 1) / 4) + me, i=1, size(g))]), &
                'sum at the root, alltoall')
    c = me
    call expect(swingcoll_iallgather(c, b, 4_c_size_t, SWINGCOLL_I32, comm, reqs(7)) == 0, 'iallgather')
    error = swingcoll_wait(reqs(7))
    call expect(error == 0 .and. all(b == [((i - 1) / 4, i=1, size(b))]), 'iallgather')
  end subroutine nonblocking

  ! The last one is an error of the communicator, which stays usable.
  subroutine refused(me)
    integer(c_int), intent(in) :: me
    integer(c_int32_t), target :: v(10), w(5)

    v = me
    call expect(swingcoll_allreduce(v(1:9:2), w, 5_c_size_t, SWINGCOLL_I32, SWINGCOLL_SUM, comm) == -einval, &
                'a buffer with gaps')
    call expect(swingcoll_allreduce(v, v, 10_c_size_t, SWINGCOLL_I32, merge(SWINGCOLL_SUM, SWINGCOLL_MAX, me == 0), &
                                    comm) < 0, 'ranks that disagree')
  end subroutine refused
end program coll_fortran
