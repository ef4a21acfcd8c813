import { migratePostgres } from '@tapetree/session/stores/postgres'
import { missingNats, NatsProcess } from '../../packages/server/src/bus/testing/nats-process.ts'
import { missingPostgres, PostgresServer } from '../../packages/session/src/testing/postgres-server.ts'

/** What several servers need to form one service: a database and a NATS server. */
export class Backends implements AsyncDisposable {
  readonly #database: PostgresServer
  readonly #nats: NatsProcess

  static async start(): Promise<Backends> {
    const missing = missingPostgres ?? missingNats
    if (missing !== undefined) throw new Error(missing)
    const database = await PostgresServer.start()
    await database.admin('create database sessions')
    await migratePostgres(database.urlFor('admin', 'sessions'))
    await database.admin('create role app login in role tapetree_app')
    return new Backends(database, await NatsProcess.start())
  }

  private constructor(database: PostgresServer, nats: NatsProcess) {
    this.#database = database
    this.#nats = nats
  }

  get store(): string {
    return this.#database.urlFor('app', 'sessions')
  }

  get bus(): string {
    return this.#nats.url
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#nats.stop()
    await this.#database.remove()
  }
}
