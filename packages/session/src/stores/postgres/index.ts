export { postgresCopyTarget } from './copy-target.ts'
export { databaseState, type DatabaseState } from './database-state.ts'
export {
  openPostgresStore,
  PostgresLogStore,
  type PostgresStoreOptions,
  type StoredDocument,
} from './postgres-store.ts'
export { migratePostgres, type DatabaseOptions } from './database.ts'
