FROM node:22-alpine AS dashboard
WORKDIR /src/service/dashboard
COPY service/dashboard/package.json service/dashboard/package-lock.json ./
RUN npm ci
COPY openapi.json /src/openapi.json
COPY service/dashboard ./
RUN npm run build

FROM python:3.11-slim AS base
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY constraints.txt ./

# The control plane needs no torch: the tested set without torch's family is installed as it stands.
FROM base AS service
RUN grep -Ev '^(#|torch|nvidia-|cuda-|triton|scikit-learn|scipy|mypy|ruff|pytest|playwright|hypothesis|pixeltable)' constraints.txt > service.txt \
    && pip install --requirement service.txt
COPY . .
COPY --from=dashboard /src/service/dashboard/dist service/dashboard/dist
RUN pip install --no-deps . \
    && useradd --uid 10001 --home-dir /var/lib/torchyard --create-home torchyard
USER 10001
WORKDIR /var/lib/torchyard
EXPOSE 8765
ENTRYPOINT ["python", "-m", "service"]

FROM base AS worker
COPY . .
# pgrep, for the health check
RUN apt-get update && apt-get install --yes --no-install-recommends procps=2:* && rm -rf /var/lib/apt/lists/* \
    && pip install --constraint constraints.txt . \
    && useradd --uid 10001 --create-home torchyard && mkdir /work && chown torchyard /work
USER 10001
WORKDIR /work
ENTRYPOINT ["python", "-m", "worker"]
