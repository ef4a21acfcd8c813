import type { ClientBase, QueryResultRow } from 'pg'
import { SessionError } from '../../errors.ts'
import { schema1 } from './schema-1.ts'

/** One script for each version, from the one before it. They are never edited after a release. */
const migrations: readonly string[] = [schema1]

export const schemaVersion = migrations.length

/**
 * Creates the schema `tapetree`, or brings it to the version of this build. Needs a user who may create roles, schemas and
 * the extension `pg_trgm`. Processes that start at the same time wait for each other.
 */
export async function migrate(client: ClientBase): Promise<void> {
  await client.query(`select pg_advisory_lock(${lockNumber})`)
  try {
    const version = await versionOf(client)
    if (version > schemaVersion) throw newerSchema(version)
    if (version === 0) await prepare(client)
    for (let next = version; next < schemaVersion; next++) {
      await inTransaction(client, async () => {
        await client.query('set local role tapetree_owner')
        await client.query('set local search_path = tapetree, public')
        await client.query(migrations[next] as string)
        await client.query('update tapetree.version set number = $1', [next + 1])
      })
    }
  } finally {
    await client.query(`select pg_advisory_unlock(${lockNumber})`)
  }
}

interface Queryable {
  query(text: string): Promise<{ rows: QueryResultRow[] }>
}

/** The version of the schema; 0 if there is none. */
export async function versionOf(client: Queryable): Promise<number> {
  const known = await client.query(`select to_regclass('tapetree.version')::text as name`)
  if ((known.rows[0]?.['name'] ?? null) === null) return 0
  const found = await client.query('select number from tapetree.version')
  return Number(found.rows[0]?.['number'] ?? 0)
}

export function newerSchema(version: number): SessionError {
  return new SessionError(
    'newer-format',
    `The database has version ${version} of the schema, and this build knows ${schemaVersion}. Upgrade tapetree.`,
  )
}

/** The roles, the extension and the empty schema. The owner logs in nowhere; an application is granted `tapetree_app`. */
async function prepare(client: ClientBase): Promise<void> {
  await client.query(`
    do $$ begin
      if not exists (select from pg_roles where rolname = 'tapetree_owner') then create role tapetree_owner nologin; end if;
      if not exists (select from pg_roles where rolname = 'tapetree_app') then create role tapetree_app nologin; end if;
    end $$;
    grant tapetree_owner to current_user;
    create extension if not exists pg_trgm with schema public;
    create schema if not exists tapetree authorization tapetree_owner;
    grant usage on schema tapetree to tapetree_app;`)
}

async function inTransaction(client: ClientBase, work: () => Promise<void>): Promise<void> {
  await client.query('begin')
  try {
    await work()
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

/** Of the advisory lock; any number that nothing else in the database uses. */
const lockNumber = 7_274_733_101
