# Not python:3-slim: it has no compiler, and for the newest Python not every dependency has a wheel yet.
FROM python:3.13-slim

RUN useradd --uid 1000 --no-create-home blogapi && install --directory --owner=blogapi --mode=700 /data

WORKDIR /opt/blogapi
# For PostgreSQL: requirements-postgresql.txt
ARG REQUIREMENTS=requirements.txt
COPY ${REQUIREMENTS} .
RUN pip install --no-cache-dir --require-hashes -r ${REQUIREMENTS}
COPY setup.cfg pyproject.toml README.md LICENSE app.py gunicorn.conf.py schema*.sql ./
COPY blogapi blogapi
RUN pip install --no-cache-dir --no-deps --no-build-isolation .

USER 1000:1000
WORKDIR /data
VOLUME /data
ENV HOST=0.0.0.0
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# Not `blogapi serve`: the first key would be in the container's log.
CMD ["gunicorn", "--config", "python:blogapi.gunicorn_conf"]
