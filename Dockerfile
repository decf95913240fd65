# One image for serve, migrate, seed …: `docker run tidemark migrate`. Wants DATABASE_URL; the embedded Postgres is left out.
FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build

FROM node:22-slim
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000
COPY package.json package-lock.json ./
# without optional dependencies: the embedded Postgres, and the Prisma command line that comes along otherwise
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force
COPY prisma ./prisma
COPY --from=build /app/dist ./dist
RUN ln -s /app/dist/main.js /usr/local/bin/tidemark
USER node
EXPOSE 4000
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tidemark"]
CMD ["serve"]
