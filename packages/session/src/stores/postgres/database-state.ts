import { Client } from 'pg'
import { SessionError } from '../../errors.ts'
import { schemaVersion, versionOf } from './migrate.ts'

/** What a database can be used for. */
export interface DatabaseState {
  /** Such as `15.14`. */
  serverVersion: string
  /** The version of the schema `tapetree`; 0 if there is none. */
  schemaVersion: number
  /** The version that this package reads and writes. */
  neededVersion: number
}

/** Connects once, without patience. Rejects with `storage-failed` if the database cannot be reached or used. */
export async function databaseState(url: string): Promise<DatabaseState> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5000, application_name: 'tapetree' })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ server_version: string }>('show server_version')
    const [serverVersion = ''] = (rows[0]?.server_version ?? '').split(' ')
    return { serverVersion, schemaVersion: await versionOf(client), neededVersion: schemaVersion }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new SessionError('storage-failed', `The database cannot be used (${why}).`, { cause })
  } finally {
    await client.end().catch(() => undefined)
  }
}
