# compstream as one process of any role. It needs DATABASE_URL, MASTER_KEY and OPERATOR_TOKEN, or the files that hold
# them, see docs/operators/deployment.md; docker-compose.yml runs it with everything that belongs to it.

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# the embedded PostgreSQL server is optional: this image does not use it
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
    HOST=0.0.0.0
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json ./
COPY bin ./bin
COPY deploy/healthcheck.mjs ./deploy/
RUN ln -s /app/bin/compstream.js /usr/local/bin/compstream
USER node
EXPOSE 4001 4002 4003 4004 4005
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "deploy/healthcheck.mjs"]
CMD ["node", "--enable-source-maps", "--max-old-space-size=2000", "dist/main.js"]
