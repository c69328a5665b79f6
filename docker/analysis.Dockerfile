# Reads recordings: docker build -f docker/analysis.Dockerfile -t syncline . && docker run --rm -v "$PWD:/data" syncline report run
# It installs the wheel in dist/ that is for its architecture, so nothing is compiled.
FROM python:3.13-slim
COPY dist/*.whl /wheels/
RUN pip install --no-cache-dir --root-user-action=ignore /wheels/syncline-*_"$(uname -m)".whl && rm -r /wheels
# Files that a command writes belong to who owns the mounted folder, with --user "$(id -u):$(id -g)".
ENV HOME=/tmp
WORKDIR /data
ENTRYPOINT ["syncline"]
