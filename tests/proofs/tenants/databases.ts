import type { PostgresServer } from '../../../packages/session/src/testing/postgres-server.ts'
import { migratePostgres } from '@tapetree/session/stores/postgres'

/** One is the beginning of the other, which has a character that `LIKE` takes for any other. */
export const tenantNames = ['acme', 'acme_2'] as const
export type TenantName = (typeof tenantNames)[number]

/** The login role that serves all tenants, and one that is bound to each tenant. */
export const openRole = 'app'

export function boundRole(tenant: TenantName): string {
  return `only_${tenant}`
}

/** Databases with the schema and the roles, each one a copy of the first. */
export class TenantDatabases implements AsyncDisposable {
  readonly server: PostgresServer
  #count = 0

  constructor(server: PostgresServer) {
    this.server = server
  }

  /** Changes the schema of the new database by statements of the administrator. */
  async create(change = ''): Promise<string> {
    if (this.#count++ === 0) await this.#prepare()
    const database = `sessions_${this.#count}`
    // Databases share their roles, and the last change may have granted this.
    await this.server.admin('revoke tapetree_owner from tapetree_app')
    await this.server.admin(`create database ${database} template original`)
    if (change !== '') await this.server.admin(change, database)
    return database
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.remove()
  }

  async #prepare(): Promise<void> {
    await this.server.admin('create database original')
    await migratePostgres(this.server.urlFor('admin', 'original'))
    await this.server.admin(
      [
        `create role ${openRole} login in role tapetree_app`,
        ...tenantNames.flatMap((tenant) => [
          `create role ${boundRole(tenant)} login in role tapetree_app`,
          `insert into tapetree.bound_role values ('${boundRole(tenant)}', '${tenant}')`,
        ]),
      ].join(';'),
      'original',
    )
  }
}
