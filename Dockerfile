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

# The control plane needs no torch.
FROM base AS service
COPY . .
COPY --from=dashboard /src/service/dashboard/dist service/dashboard/dist
RUN pip install --constraint constraints.txt '.[service]' ./box \
    && useradd --uid 10001 --home-dir /var/lib/torchyard --no-create-home torchyard \
    && install --directory --mode 0700 --owner torchyard --group torchyard /var/lib/torchyard
USER 10001
WORKDIR /var/lib/torchyard
EXPOSE 8765
ENTRYPOINT ["python", "-m", "service"]

FROM base AS worker
COPY . .
# pgrep, for the health check
RUN apt-get update && apt-get install --yes --no-install-recommends procps=2:* && rm -rf /var/lib/apt/lists/* \
    && pip install --constraint constraints.txt '.[box]' ./box \
    && useradd --uid 10001 --create-home torchyard && mkdir /work && chown torchyard /work
USER 10001
WORKDIR /work
ENTRYPOINT ["python", "-m", "worker"]
