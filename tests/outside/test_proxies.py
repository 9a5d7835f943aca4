"""Behind a reverse proxy: Caddy with the project's Caddyfile, and both Caddy and nginx under a path."""

import http.client
import json
import operator
import os
import shutil
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from tests.pages import Page
from tests.service import CHECKOUT, Server, add_key, eventually, free_port

pytestmark = pytest.mark.slow

DEPLOYING = Page("docs/deploying.md")
(PROXY,) = DEPLOYING.take("A proxy", "")
(CADDY,) = DEPLOYING.take("Under a path", "")
(NGINX,) = DEPLOYING.take("Under a path", "nginx")
NGINX_FILE = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
    fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    server {{ listen 127.0.0.1:{port}; {location} }}
}}
"""


def found(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")


def test_the_caddyfile_is_the_one_on_the_page():
    caddyfile = (CHECKOUT / "deploy/Caddyfile").read_text().replace("{$DOMAIN}", "blog.example.org")
    assert caddyfile.replace("{$BACKEND:127.0.0.1:8000}", "127.0.0.1:8000") == PROXY


@pytest.fixture
def behind(tmp_path):
    """Put a service behind Caddy, which knows other ports, too."""
    if not shutil.which("caddy"):
        pytest.skip("caddy is not there")
    with Server(tmp_path / "blog.db") as service, ExitStack() as stack:

        def start(*others):
            direct, service.port = service.port, free_port()
            stack.enter_context(proxy("caddy", tmp_path, service.port, *others, direct))
            eventually(service.answers)
            return service

        yield start


def test_a_compressed_answer_can_be_changed_behind_caddy(behind):
    service = behind()
    service.request("POST", "/v1/posts", {"title": "A", "content": "word " * 1000})
    etag = service.request("GET", "/v1/posts/1", Accept_Encoding="identity")[1]["ETag"]
    compressed = etag[:-1] + '-gzip"'  # as newer versions of Caddy send it
    change = ("PATCH", "/v1/posts/1", {"title": "B"})
    assert service.request(*change, If_Match=compressed)[0] == 200
    assert service.request(*change, If_Match=compressed)[0] == 412
    headers = service.request("HEAD", "/v1/posts/1", Accept_Encoding="gzip")[1]
    assert headers["Content-Encoding"] == "gzip"
    assert service.request(*change, If_Match=headers["ETag"])[0] == 200


def test_behind_caddy_nobody_notices_that_one_of_several_services_is_down(behind):
    service = behind(free_port())
    for _ in range(20):  # Not POST: older versions of Caddy have closed the body by the time they retry.
        assert service.request("GET", "/v1/posts")[0] == 200


def test_behind_caddy_a_broken_request_ends_nobody_elses(behind):
    service = behind()
    for _ in range(5):
        head = b"POST /v1/posts HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\n\r\n" % service.port
        with service.connect() as stranger:
            stranger.sendall(head + b"zz\r\n")
            assert stranger.recv(4096).startswith((b"HTTP/1.1 502 ", b"HTTP/1.1 401 ", b"HTTP/1.1 400 "))
        assert service.request("POST", "/v1/posts", {"title": "A", "content": "B"})[0] == 201


@pytest.fixture(params=["caddy", "caddy without the path", "nginx", "nginx without the path"])
def under_a_path(request, tmp_path):
    """A service behind a proxy, under the path /blog."""
    program, _, without = request.param.partition(" ")
    if not found(program):
        pytest.skip(f"{program} is not there")
    port = free_port()
    settings = {"BLOGAPI_URL": f"http://127.0.0.1:{port}/blog", "BLOGAPI_TRUSTED_PROXIES": "127.0.0.1"}
    with Server(tmp_path / "blog.db", **settings) as service:
        direct = f"127.0.0.1:{service.port}"
        if program == "caddy":
            text = CADDY.replace("127.0.0.1:8000", direct)
            if without:
                text = f"handle_path /blog/* {{\n{text.replace('/blog/* ', '')}}}\n"
            (tmp_path / "proxy").write_text(f"{{\nadmin off\n}}\nhttp://127.0.0.1:{port} {{\n{text}}}\n")
            command = ["caddy", "run", "--adapter", "caddyfile", "--config", tmp_path / "proxy"]
        else:
            text = NGINX.replace("127.0.0.1:8000", f"{direct}/" if without else direct)
            (tmp_path / "proxy").write_text(NGINX_FILE.format(folder=tmp_path, port=port, location=text))
            command = ["/usr/sbin/nginx", "-e", tmp_path / "error.log", "-c", tmp_path / "proxy"]
        service.port = port
        with running(command, tmp_path):
            eventually(lambda: service.answers("/blog/healthz"))
            yield service


def test_under_a_path_every_address_includes_it(under_a_path):
    service = under_a_path
    post = {"title": "A", "content": "😀" * 300_000, "tags": ["a/b"]}
    status, headers, _ = service.request("POST", "/blog/v1/posts", post)
    assert (status, headers["Location"]) == (201, "/blog/v1/posts/1")
    assert service.request("GET", headers["Location"])[0] == 200
    service.request("POST", "/blog/v1/posts", post)
    link = service.request("GET", "/blog/v1/posts?limit=1")[1]["Link"]
    assert link == '</blog/v1/posts?limit=1&before=2>; rel="next"'
    assert [each["id"] for each in service.request("GET", link[1 : link.index(">")])[2]] == ["1"]
    described = service.request("GET", "/blog/openapi.json")[2]["servers"][0]["url"]
    assert described == f"http://127.0.0.1:{service.port}/blog"
    assert service.request("GET", "/blog/v1/tags/a%2Fb")[2]["posts"] == 2


@contextmanager
def running(command, folder, **settings):
    """Run a proxy, which keeps its files in a folder."""
    with (folder / "proxy.log").open("w") as log:
        environ = os.environ | {"HOME": str(folder)} | settings
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def with_ports(name, proxy, *services):
    """The example of a proxy's configuration, with other ports."""
    text = (CHECKOUT / "deploy" / name).read_text()
    text = text.replace("bind :80", f"bind 127.0.0.1:{proxy}").replace("listen 80", f"listen 127.0.0.1:{proxy}")
    for port, service in zip((8000, 8001), services, strict=True):
        text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{service}")
    return text


@contextmanager
def proxy(program, folder, port, *services):
    """Run a proxy in front of services, with the example of its configuration."""
    config, settings = folder / "proxy", {}
    if program == "caddy":
        addresses = " ".join(f"127.0.0.1:{service}" for service in services)
        settings = {"DOMAIN": f"http://127.0.0.1:{port}", "BACKEND": addresses, "CADDY_ADMIN": f"unix/{folder}/admin"}
        command = ["caddy", "run", "--config", CHECKOUT / "deploy/Caddyfile"]
    elif program == "haproxy":
        config.write_text(with_ports("haproxy.cfg", port, *services))
        command = ["/usr/sbin/haproxy", "-db", "-f", config]
    else:
        start, _, _ = NGINX_FILE.format(folder=folder, port=port, location="").partition("    server {")
        config.write_text(f"{start}{with_ports('nginx.conf', port, *services)}}}\n")
        command = ["/usr/sbin/nginx", "-e", folder / "error.log", "-c", config]
    with running(command, folder, **settings):
        yield


def restart(service, names):
    """Restart a service; wait until the proxies in front of it, with keys of these names, use it again."""

    def created():
        return [service.log.count(f'{name} "POST /v1/posts" 201') for name in names]

    assert service.stop() == 0
    before = created()
    service.start()
    eventually(lambda: all(map(operator.gt, created(), before)), 60)


def create(port, key, done):
    """Create posts through a proxy until `done` is set; return how often each status or error occurred."""
    connection, statuses = http.client.HTTPConnection("127.0.0.1", port, timeout=60), Counter()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    while not done.wait(0.05):
        try:
            connection.request("POST", "/v1/posts", json.dumps({"title": "A", "content": "B"}), headers)
            response = connection.getresponse()
            response.read()
            statuses[response.status] += 1
        except (OSError, http.client.HTTPException) as error:
            statuses[type(error).__name__] += 1
            connection.close()
    connection.close()
    return statuses


def test_a_rolling_restart_behind_each_proxy_loses_no_request(tmp_path, url):
    programs = [name for name in ("caddy", "haproxy", "nginx") if found(name)]
    if not programs:
        pytest.skip("no proxy is there")
    done, creating = threading.Event(), {}
    with (
        Server(url, log_file=tmp_path / "one.log", BLOGAPI_DRAIN_SECONDS=3) as one,
        Server(url, log_file=tmp_path / "two.log", key=one.key, BLOGAPI_DRAIN_SECONDS=3) as two,
        ThreadPoolExecutor(3 * len(programs)) as pool,
        ExitStack() as stack,
    ):
        stack.callback(done.set)
        for program in programs:
            front = Server(url, log_file=tmp_path / f"{program}.log", key=one.write(add_key, program))
            (tmp_path / program).mkdir()
            stack.enter_context(proxy(program, tmp_path / program, front.port, one.port, two.port))
            eventually(front.answers)
            creating[program] = [pool.submit(create, front.port, front.key, done) for _ in range(3)]
        for service in (one, two):
            restart(service, programs)
        done.set()
        statuses = {name: sum((each.result() for each in jobs), Counter()) for name, jobs in creating.items()}
    for program, counts in statuses.items():
        assert set(counts) == {201}, (program, counts)
        assert counts[201] > 20
