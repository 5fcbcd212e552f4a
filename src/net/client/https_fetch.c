/* SPDX-License-Identifier: Apache-2.0 */
/* https_fetch.c - see client.h. A loop that lives for one fetch: asks, and asks again where a
 * redirect points to, until there is a body or a reason why not. */

#include <strings.h>

#include "base/clock.h"
#include "net/client/client.h"
#include "net/loop.h"

#define URL_MAX 2048

struct url {
	struct http_endpoint endpoint;
	char path[URL_MAX];
};

struct fetch {
	struct loop *loop;
	struct http_client *client;
	char url[URL_MAX]; /* that is asked now */
	struct url to;
	unsigned redirects;
	uint64_t until_ns;
	struct buf *body;
	struct errinfo *reterr;
	int err;
};

static int url_parse(const char *text, struct url *ret, struct errinfo *reterr)
{
	static const char scheme[] = "https://";
	char place[300];
	const char *path;

	if (strncasecmp(text, scheme, strlen(scheme)) != 0)
		return errinfo_set(reterr, -EINVAL,
			"'%.200s' is not an https URL: nothing is fetched without encryption",
			text);
	path = text + strlen(scheme);
	path += strcspn(path, "/?#");
	if (strlen(text) >= URL_MAX || (size_t)(path - text) >= sizeof(place) ||
		memchr(text, '@', (size_t)(path - text)))
		return errinfo_set(reterr, -EINVAL, "'%.200s' is not a usable URL", text);
	snprintf(place, sizeof(place), "%.*s", (int)(path - text), text);
	snprintf(ret->path, sizeof(ret->path), "%s%.*s", *path == '/' ? "" : "/",
		(int)strcspn(path, "#"), path);
	return http_endpoint_parse(place, true, 443, &ret->endpoint, reterr);
}

static http_done fetch_done;

static int fetch_ask(struct fetch *f)
{
	uint64_t now = mono_now().ns;
	struct http_ask a = {.endpoint = &f->to.endpoint,
		.method = "GET",
		.path = f->to.path,
		.timeout_ns = f->until_ns > now ? f->until_ns - now : 1,
		.body_max = f->body->max};
	int r = http_ask(f->client, &a, fetch_done, f, NULL);

	if (r < 0)
		return errinfo_set(f->reterr, r, "%s cannot be fetched: %s", f->url, strerror(-r));
	return 0;
}

static bool is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* An absolute URL, or a path on the same server. */
static int redirect(struct fetch *f, const char *location)
{
	char url[URL_MAX];
	int n;

	if (!location || !*location)
		return errinfo_set(f->reterr, -EPROTO, "%s redirects without an address", f->url);
	if (++f->redirects > HTTPS_FETCH_REDIRECTS)
		return errinfo_set(f->reterr, -ELOOP, "there are more than %d redirects, to %s",
			HTTPS_FETCH_REDIRECTS, f->url);
	if (location[0] == '/' && location[1] == '/')
		n = snprintf(url, sizeof(url), "https:%s", location);
	else if (location[0] == '/')
		n = snprintf(url, sizeof(url), "https://%s%s%s:%u%s",
			strchr(f->to.endpoint.host, ':') ? "[" : "", f->to.endpoint.host,
			strchr(f->to.endpoint.host, ':') ? "]" : "", f->to.endpoint.port, location);
	else
		n = snprintf(url, sizeof(url), "%s", location);
	if (n >= (int)sizeof(url))
		return errinfo_set(
			f->reterr, -EPROTO, "%s redirects to a URL that is too long", f->url);
	memcpy(f->url, url, (size_t)n + 1);
	n = url_parse(f->url, &f->to, f->reterr);
	if (n < 0)
		return errinfo_set(f->reterr, -EPROTO,
			"refused a redirect to '%.200s': only https URLs are fetched", f->url);
	return fetch_ask(f);
}

static void fetch_done(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct fetch *f = arg;

	if (err == -EMSGSIZE)
		err = errinfo_set(
			f->reterr, -EMSGSIZE, "%s is over %zu KiB", f->url, f->body->max >> 10);
	else if (err < 0)
		err = errinfo_set(f->reterr, err, "%s", e->text);
	else if (is_redirect(r->status))
		err = redirect(f, http_head_get(&r->head, "location"));
	else if (r->status != 200)
		err = errinfo_set_exit(f->reterr, EXIT_FAILED, -EPROTO,
			"%s: the server answers %d %s", f->url, r->status,
			http_status_text(r->status));
	else
		buf_append(f->body, r->body, r->body_len);
	if (err < 0 || !is_redirect(r->status)) {
		f->err = err;
		loop_stop(f->loop);
	}
}

int https_fetch(
	const char *url, const char *ca, uint64_t timeout_ns, struct buf *b, struct errinfo *reterr)
{
	struct tls_client_settings trust = {.ca = ca};
	_cleanup_(tls_freep) struct tls *tls = NULL;
	_cleanup_(loop_freep) struct loop *loop = NULL;
	_cleanup_(http_client_freep) struct http_client *client = NULL;
	struct fetch f = {.body = b, .reterr = reterr, .until_ns = mono_now().ns + timeout_ns};
	int r = url_parse(url, &f.to, reterr);

	if (r < 0)
		return r;
	snprintf(f.url, sizeof(f.url), "%s", url);
	r = tls_client_new(&trust, &tls, reterr);
	r = r ?: loop_new(&loop);
	r = r ?: http_client_new(loop, &(struct http_client_settings){.tls = tls}, &client, reterr);
	if (r < 0)
		return r;
	f.loop = loop;
	f.client = client;
	r = fetch_ask(&f);
	r = r ?: loop_run(loop);
	return r < 0 ? r : f.err < 0 ? f.err : b->err;
}
