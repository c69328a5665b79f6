# Records the host: docker build -f docker/record.Dockerfile -t syncline-record . && docker run --rm --privileged --pid=host --cgroupns=host \
#   -v /sys/kernel:/sys/kernel -v "$PWD:/data" syncline-record --for 30s -o run
# The kernel's events are the host's, and so are the processes and control groups whose names the recording has.
FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends bpftrace strace && rm -rf /var/lib/apt/lists/*
COPY dist/*.whl /wheels/
RUN pip install --no-cache-dir --root-user-action=ignore /wheels/syncline-*_"$(uname -m)".whl && rm -r /wheels
WORKDIR /data
ENTRYPOINT ["syncline", "record"]
