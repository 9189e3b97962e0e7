/*
 * verbs.c replaces libibverbs inside QEMU, so that its pvrdma device runs on machines without any RDMA device. It
 * has one device, verbs0, with a port that is always active and a table of the GIDs that the guest has registered, and
 * it is the multiplexer that QEMU registers them with (socket VERBS_MAD). Queues can be created, but nothing is ever
 * sent: the work of the guest's driver is real, its measurements would not be.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#undef ibv_query_port
#undef ibv_reg_mr

enum { GIDS = 16, REGISTER = 0, UNREGISTER = 1, RESPONSE = 1 };

/* The same as in QEMU's contrib/rdmacm-mux. */
struct message {
	struct {
		int type, operation;
		union ibv_gid gid;
		int error;
	} header;
	int length;
	struct {
		struct ib_user_mad header;
		char mad[256];
	} mad;
};

static struct ibv_device device = {.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "verbs0", .dev_name = "uverbs0"};
static struct ibv_context context = {.device = &device, .num_comp_vectors = 1};
static union ibv_gid gids[GIDS];
static const union ibv_gid none;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned next_key, next_qp = 16;
static int mad = -1;

static int find(const union ibv_gid *gid)
{
	for (int i = 0; i < GIDS; i++)
		if (!memcmp(&gids[i], gid, sizeof *gid))
			return i;
	return -1;
}

static int change(int operation, const union ibv_gid *gid)
{
	int error = 1;
	pthread_mutex_lock(&lock);
	int i = find(gid);
	if (operation == REGISTER) {
		if (i < 0 && (i = find(&none)) >= 0)
			gids[i] = *gid;
		error = i < 0;
	} else if (operation == UNREGISTER && i >= 0) {
		gids[i] = none;
		error = 0;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static void *serve(void *unused)
{
	(void)unused;
	for (int c; (c = accept(mad, NULL, NULL)) >= 0; close(c)) {
		struct message m;
		while (recv(c, &m, sizeof m, MSG_WAITALL) == sizeof m) {
			m.header.error = change(m.header.operation, &m.header.gid);
			m.header.type = RESPONSE;
			if (send(c, &m, sizeof m, MSG_NOSIGNAL) != sizeof m)
				break;
		}
	}
	return NULL;
}

static void __attribute__((constructor)) start(void)
{
	const char *path = getenv("VERBS_MAD");
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	if (!path || strlen(path) >= sizeof name.sun_path)
		return;
	strcpy(name.sun_path, path);
	unlink(path);
	mad = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t thread;
	if (mad < 0 || bind(mad, (void *)&name, sizeof name) || listen(mad, 4) || pthread_create(&thread, NULL, serve, NULL)) {
		perror("verbs: VERBS_MAD");
		_exit(1);
	}
	pthread_detach(thread);
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc) { return 0; }
static int req_notify_cq(struct ibv_cq *cq, int solicited) { return 0; }
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) { *bad = wr; return EOPNOTSUPP; }
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) { return 0; }

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(2, sizeof *list);
	if (list)
		list[0] = &device;
	if (n)
		*n = list != NULL;
	return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = req_notify_cq;
	context.ops.post_send = post_send;
	context.ops.post_recv = post_recv;
	return &context;
}

int ibv_close_device(struct ibv_context *c) { return 0; }

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	*a = (struct ibv_device_attr){
		.fw_ver = "1.0", .max_mr_size = ~0ull, .page_size_cap = 4096, .max_qp = 1024, .max_qp_wr = 16384, .max_sge = 32,
		.max_cq = 1024, .max_cqe = 65536, .max_mr = 65536, .max_pd = 1024, .max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16,
		.max_ah = 1024, .max_srq = 1024, .max_pkeys = 1, .phys_port_cnt = 1,
	};
	return 0;
}

int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *a = (void *)attr;
	a->state = IBV_PORT_ACTIVE;
	a->max_mtu = a->active_mtu = IBV_MTU_4096;
	a->gid_tbl_len = GIDS;
	a->max_msg_sz = 1u << 30;
	a->pkey_tbl_len = 1;
	a->active_width = a->active_speed = 1;
	a->phys_state = 5;
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

int ibv_query_gid(struct ibv_context *c, uint8_t port, int i, union ibv_gid *gid)
{
	if (i < 0 || i >= GIDS)
		return -1;
	pthread_mutex_lock(&lock);
	*gid = gids[i];
	pthread_mutex_unlock(&lock);
	return 0;
}

/* A new object of a kind whose first members are set by the caller. */
#define NEW(type, ...) ({ type *o = malloc(sizeof *o); if (o) *o = (type){__VA_ARGS__}; o; })
#define FREE(kind, type) int ibv_##kind(type *o) { free(o); return 0; }

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c) { return NEW(struct ibv_pd, .context = c); }
FREE(dealloc_pd, struct ibv_pd)

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	unsigned k = __sync_add_and_fetch(&next_key, 1);
	return NEW(struct ibv_mr, .context = pd->context, .pd = pd, .addr = addr, .length = length, .lkey = k, .rkey = k);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}
FREE(dereg_mr, struct ibv_mr)

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC)) /* nothing is ever written to it */
		return NULL;
	return NEW(struct ibv_comp_channel, .context = c, .fd = p[0]);
}
int ibv_destroy_comp_channel(struct ibv_comp_channel *o) { close(o->fd); free(o); return 0; }
int ibv_get_cq_event(struct ibv_comp_channel *o, struct ibv_cq **cq, void **user) { errno = EAGAIN; return -1; }
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n) {}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *user, struct ibv_comp_channel *channel, int vector)
{
	return NEW(struct ibv_cq, .context = c, .channel = channel, .cq_context = user, .cqe = n);
}
FREE(destroy_cq, struct ibv_cq)

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	return NEW(struct ibv_qp, .context = pd->context, .pd = pd, .send_cq = a->send_cq, .recv_cq = a->recv_cq, .qp_type = a->qp_type,
		   .qp_num = __sync_add_and_fetch(&next_qp, 1));
}
FREE(destroy_qp, struct ibv_qp)
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask) { if (mask & IBV_QP_STATE) qp->state = a->qp_state; return 0; }
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
	*a = (struct ibv_qp_attr){.qp_state = qp->state, .cur_qp_state = qp->state};
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a) { errno = EOPNOTSUPP; return NULL; }
FREE(destroy_ah, struct ibv_ah)
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a) { errno = EOPNOTSUPP; return NULL; }
FREE(destroy_srq, struct ibv_srq)
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *a, int mask) { return EOPNOTSUPP; }
int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *a) { return EOPNOTSUPP; }
