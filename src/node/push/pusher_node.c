/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_node.c - see pusher_node.h.
 *
 * AWS: a token by PUT (IMDSv2), with it the instance's id. GCP: any reply with its Metadata-Flavor. Azure:
 * a reply of its instance document. All three live at the same link-local address, so that the reply has
 * to be the right one, not just any. */
#include "node/push/pusher_node.h"

#include <ctype.h>
#include <strings.h>

#include "net/digest.h"

#define LINK_LOCAL "169.254.169.254"
#define REPLY_MAX  (64u << 10)
#define TOKEN_MAX  1024

const struct provider_endpoints provider_defaults = {
	.aws = {.host = LINK_LOCAL, .port = 80},
	.gcp = {.host = LINK_LOCAL, .port = 80},
	.azure = {.host = LINK_LOCAL, .port = 80},
};

struct detection {
	const struct provider_endpoints *where;
	struct loop *loop;
	struct http_client *client;
	const char *found;
	unsigned open;
	char token[TOKEN_MAX];
};

bool pusher_provider_is_instance(const char *id, size_t len)
{
	if (len < 10 || len > 19 || strncmp(id, "i-", 2))
		return false;
	for (size_t i = 2; i < len; i++)
		if (!isxdigit((unsigned char)id[i]) || isupper((unsigned char)id[i]))
			return false;
	return true;
}

static void answered(struct detection *d, const char *provider)
{
	d->open--;
	if (provider && !d->found)
		d->found = provider;
	if (d->found || !d->open)
		loop_stop(d->loop);
}

static void ask(struct detection *d, const struct http_endpoint *to, const char *method,
	const char *path, const struct http_field *field, http_done *done)
{
	const struct http_ask a = {.endpoint = to,
		.method = method,
		.path = path,
		.fields = field,
		.field_count = 1,
		.timeout_ns = PROVIDER_ASK_NS,
		.body_max = REPLY_MAX,
		.alone = true};

	if (http_ask(d->client, &a, done, d, NULL) == 0)
		d->open++;
}

static void on_aws_instance(
	void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	bool is_it =
		err == 0 && r->status == 200 && pusher_provider_is_instance(r->body, r->body_len);

	answered(arg, is_it ? "aws" : NULL);
}

static void on_aws_token(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct detection *d = arg;
	struct http_field field = {"x-aws-ec2-metadata-token", d->token};

	if (err == 0 && r->status == 200 && r->body_len && r->body_len < TOKEN_MAX) {
		snprintf(d->token, sizeof(d->token), "%.*s", (int)r->body_len, r->body);
		ask(d, &d->where->aws, "GET", "/latest/meta-data/instance-id", &field,
			on_aws_instance);
	}
	answered(d, NULL);
}

static void on_gcp(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	const char *flavor = err == 0 ? http_head_get(&r->head, "metadata-flavor") : NULL;

	answered(arg, flavor && !strcasecmp(flavor, "Google") && r->status == 200 ? "gcp" : NULL);
}

static void on_azure(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	bool is_it = err == 0 && r->status == 200 &&
		     memmem(r->body, r->body_len, "\"compute\"", strlen("\"compute\""));

	answered(arg, is_it ? "azure" : NULL);
}

void pusher_provider_ask(const struct provider_endpoints *where, char ret[PROVIDER_MAX])
{
	const struct http_client_settings s = {0};
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct detection d = {.where = where};
	const struct http_field aws = {"x-aws-ec2-metadata-token-ttl-seconds", "60"};
	const struct http_field gcp = {"metadata-flavor", "Google"};
	const struct http_field azure = {"metadata", "true"};

	ret[0] = 0;
	if (loop_new(&loop) < 0)
		return;
	d.loop = loop;
	if (http_client_new(loop, &s, &d.client, NULL) < 0)
		return;
	ask(&d, &d.where->aws, "PUT", "/latest/api/token", &aws, on_aws_token);
	ask(&d, &d.where->gcp, "GET", "/computeMetadata/v1/instance/id", &gcp, on_gcp);
	ask(&d, &d.where->azure, "GET", "/metadata/instance?api-version=2021-02-01", &azure,
		on_azure);
	if (d.open)
		(void)loop_run(loop);
	if (d.found)
		snprintf(ret, PROVIDER_MAX, "%s", d.found);
	http_client_free(d.client);
}

void pusher_provider_detect(char ret[PROVIDER_MAX])
{
	pusher_provider_ask(&provider_defaults, ret);
}

/* ---- names of groups and cohorts ---- */

#define KEY_MAX 4096

static void hash_text(const char *text, size_t len, char ret[PUSH_HASH_MAX])
{
	char hex[DIGEST_HEX] = ""; /* stays so without memory: no group */

	(void)digest_sha256(text, len, hex);
	memcpy(ret, hex, PUSH_HASH_MAX - 1);
	ret[PUSH_HASH_MAX - 1] = 0;
}

void pusher_group_hash(const char *path, char ret[PUSH_HASH_MAX])
{
	ret[0] = 0;
	if (*path)
		hash_text(path, strlen(path), ret);
}

/* A piece between '/', '-', '_', '.' and ':' that names one of many: a number, or hexadecimal digits
 * with at least one number in them, as ids have. Kubernetes writes "pod" before those of its pods. */
static bool is_instance(const char *s, size_t len)
{
	bool has_digit = false;

	if (len > 3 && !strncmp(s, "pod", 3)) {
		s += 3;
		len -= 3;
	}
	for (size_t i = 0; i < len; i++) {
		if (!isxdigit((unsigned char)s[i]))
			return false;
		has_digit = has_digit || isdigit((unsigned char)s[i]);
	}
	return len && has_digit;
}

void pusher_cohort_hash(
	const char *workload, const char *job, const char *cgroup, char ret[PUSH_HASH_MAX])
{
	_cleanup_buf_ struct buf key = BUF_INIT(KEY_MAX);

	ret[0] = 0;
	if (!*job && !*cgroup)
		return;
	buf_printf(&key, "%s\n%s\n", workload, job);
	if (!*job) {
		const char *path = cgroup;

		while (*path) {
			size_t len = strcspn(path, "/-_.:");

			if (!is_instance(path, len))
				buf_append(&key, path, len);
			path += len;
			if (*path)
				buf_putc(&key, *path++);
		}
	}
	if (!key.err)
		hash_text(key.data, key.len, ret);
}
