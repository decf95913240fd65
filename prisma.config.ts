// Prisma's own tools only (generate, validate, format). The service gets its address from src/config.ts,
// and migrations are applied by src/store/migrate.ts.
import { defineConfig } from 'prisma/config';

export default defineConfig({ schema: 'prisma/schema.prisma' });
