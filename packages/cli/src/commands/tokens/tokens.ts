import { systemClock } from '@tapetree/agent/run'
import {
  DatabaseDocument,
  defaultTenant,
  storedUsage,
  tokenInfo,
  TokenStore,
  type NewToken,
  type Role,
} from '@tapetree/server'
import { localScope } from '@tapetree/session'
import { existsSync } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { flag, textOption, type CommandRun, type Invocation } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { printJson, write, type Io } from '../../command-line/io.ts'
import { openStore } from '../../host/open-store.ts'
import { placesOf } from '../../host/places.ts'
import { chosenStore, requireDatabase, type StoreAddress } from '../../host/store-address.ts'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { outputTable } from '../../text/output-table.ts'
import { limitsOf, limitTexts } from './limits.ts'

export const listTokens: CommandRun = async (invocation, io) => {
  await using opened = await openTokens(invocation, io)
  const { tokens } = opened
  const records = tokens?.list() ?? []
  const hasLimits = records.some(({ limits }) => limits !== undefined)
  // Reading sessions takes time. The sessions of another server's token file are elsewhere.
  const isMeasured = tokens && hasLimits && textOption(invocation, 'file') === undefined && !opened.isShared
  await using store = isMeasured ? await openStore(placesOf(io)) : undefined
  const usages = tokens && store ? await storedUsage(records, { tokens, store }) : new Map<string, object>()
  const listed = records.map((record) => ({
    ...tokenInfo(record),
    ...(usages.has(record.id) && { usage: usages.get(record.id) }),
  }))
  if (flag(invocation, 'json')) {
    await printJson(io, { tokens: listed })
    return exitCodes.ok
  }
  if (listed.length === 0) {
    await write(io.stderr, 'There are no tokens. Create one with `tapetree tokens create`, or pair a device.\n')
    return exitCodes.ok
  }
  const columns = ['ID', 'ROLE', 'TENANT', 'EXPIRES', 'FOLDER', 'LIMITS', 'NAME'].map((title) => ({
    title,
    flexible: title === 'NAME',
  }))
  const rows = listed.map(({ id, role, tenant, name = '', folder = '', expires_at: expires, limits, usage }) => [
    id,
    role,
    harmlessLine(tenant),
    expiryText(expires),
    harmlessLine(folder),
    limits ? limitTexts(limits, usage).join(', ') : '',
    harmlessLine(name),
  ])
  const isUsed = columns.map((_, index) => rows.some((row) => row[index] !== '') && !isSingleTenant(index))
  const used = <T>(cells: readonly T[]): T[] => cells.filter((_, index) => isUsed[index])
  await write(io.stdout, outputTable(used(columns), rows.map(used), io.stdout.columns))
  return exitCodes.ok

  function isSingleTenant(index: number): boolean {
    return columns[index]?.title === 'TENANT' && records.every(({ tenant }) => tenant === defaultTenant)
  }
}

export const createToken: CommandRun = async (invocation, io) => {
  const grant = await grantOf(invocation, io)
  await using opened = await openTokens(invocation, io)
  const tokens = opened.tokens ?? (await openFile(invocation, io))
  const known = new Set([defaultTenant, ...tokens.list().map(({ tenant }) => tenant)])
  if (!known.has(grant.tenant)) {
    const all = [...known].map((each) => harmlessLine(each)).join(', ')
    throw usageFailure(
      `No server with this token file has a tenant ${JSON.stringify(harmlessLine(grant.tenant))}. Its tenants are: ${all}.`,
    )
  }
  const { token, record } = await tokens.create(grant)
  if (flag(invocation, 'json')) {
    await printJson(io, { ...tokenInfo(record), token })
    return exitCodes.ok
  }
  await write(io.stdout, `${token}\n`)
  await write(io.stderr, `This is token ${record.id} of role ${record.role}. It is shown only this once.\n`)
  return exitCodes.ok
}

export const revokeTokens: CommandRun = async (invocation, io) => {
  await using opened = await openTokens(invocation, io)
  const { tokens } = opened
  const before = tokens?.list() ?? []
  const missing = invocation.positionals.find((id) => !before.some((record) => record.id === id))
  if (!tokens || missing !== undefined) {
    throw new Failure(exitCodes.notFound, `There is no token ${JSON.stringify(harmlessLine(missing ?? ''))}.`, {
      type: 'token-not-found',
      next: ['tapetree tokens list'],
    })
  }
  for (const { id, tenant } of before.filter(({ id }) => invocation.positionals.includes(id))) {
    await tokens.revoke(id, tenant)
  }
  const left = new Set(tokens.list().map(({ id }) => id))
  const revoked = before.map(({ id }) => id).filter((id) => !left.has(id))
  if (flag(invocation, 'json')) await printJson(io, { revoked })
  else await write(io.stdout, `Revoked ${counted(revoked.length, 'token')}: ${revoked.join(', ')}\n`)
  return exitCodes.ok
}

function fileOf(invocation: Invocation, io: Io): string {
  const given = textOption(invocation, 'file')
  return given === undefined ? join(placesOf(io).state, 'tokens.json') : resolve(io.cwd, given)
}

interface OpenedTokens extends AsyncDisposable {
  /** Undefined if there is no file yet. */
  tokens: TokenStore | undefined
  /** Whether they are in a database. */
  isShared: boolean
}

/** The tokens of a file, or those of the servers of a database. */
async function openTokens(invocation: Invocation, io: Io): Promise<OpenedTokens> {
  const address = textOption(invocation, 'file') === undefined ? await chosenStore(invocation, io) : undefined
  if (address?.type === 'postgres') return openSharedTokens(address)
  const tokens = existsSync(fileOf(invocation, io)) ? await openFile(invocation, io) : undefined
  return { tokens, isShared: false, [Symbol.asyncDispose]: () => Promise.resolve() }
}

async function openSharedTokens(address: Extract<StoreAddress, { type: 'postgres' }>): Promise<OpenedTokens> {
  await requireDatabase(address)
  const { PostgresLogStore } = await import('@tapetree/session/stores/postgres')
  const logs = new PostgresLogStore({ url: address.url, connections: 2, patienceMs: 5000 })
  const closing = new AbortController()
  const table = logs.document(localScope, 'tokens')
  const file = await DatabaseDocument.open({ name: address.shown, table, clock: systemClock, closing: closing.signal })
  return {
    tokens: await TokenStore.open({ file, first: null }),
    isShared: true,
    [Symbol.asyncDispose]: async () => {
      closing.abort()
      await logs.close()
    },
  }
}

async function openFile(invocation: Invocation, io: Io): Promise<TokenStore> {
  return TokenStore.open({ file: fileOf(invocation, io), first: null }).catch((cause: unknown) => {
    throw new Failure(exitCodes.configuration, cause instanceof Error ? cause.message : String(cause), {
      type: 'token-file',
      cause,
    })
  })
}

async function grantOf(invocation: Invocation, io: Io): Promise<NewToken> {
  // The parser accepts no other value.
  const role = (textOption(invocation, 'role') ?? 'view') as Role
  const [name, given, expires] = ['name', 'folder', 'expires'].map((option) => textOption(invocation, option))
  const folder = given === undefined ? undefined : await folderAt(given, io)
  if (role === 'metrics' && folder !== undefined) {
    throw usageFailure('The metrics are those of the whole server, so a token of role metrics has no --folder.')
  }
  if (name !== undefined && (name === '' || name.length > 200)) {
    throw usageFailure('--name must have 1 to 200 characters.')
  }
  const limits = limitsOf(invocation)
  return {
    tenant: textOption(invocation, 'tenant') ?? defaultTenant,
    role,
    ...(name !== undefined && { name }),
    ...(folder !== undefined && { folder }),
    ...(expires !== undefined && { expiresAt: expiryOf(expires, Date.now()) }),
    ...(limits && { limits }),
  }
}

/** Real: the server compares it with the real folders of sessions. */
async function folderAt(given: string, { cwd }: Io): Promise<string> {
  const folder = await realpath(resolve(cwd, given)).catch(() => undefined)
  if (folder !== undefined && (await stat(folder)).isDirectory()) return folder
  throw new Failure(exitCodes.notFound, `There is no folder ${harmlessLine(given)}.`, { type: 'folder-not-found' })
}

const unitMs: Readonly<Record<string, number>> = { d: 24 * 60 * 60_000, h: 60 * 60_000, m: 60_000 }

/** `30d`, `12h`, `45m`, the start of a day in local time, or a time. */
export function expiryOf(text: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,5})([dhm])$/.exec(text) ?? []
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const time =
    count === undefined ? Date.parse(isDay ? `${text}T00:00` : text) : now + Number(count) * (unitMs[unit] ?? 0)
  if (!isDay && count === undefined && !/^\d{4}-\d{2}-\d{2}T/.test(text)) throw wrongExpiry(text)
  if (Number.isNaN(time)) throw wrongExpiry(text)
  if (time <= now) throw usageFailure(`--expires ${harmlessLine(text)} is in the past.`)
  return time
}

function wrongExpiry(text: string): Failure {
  return usageFailure(
    `--expires must be a period such as 30d, 12h or 45m, a day such as 2027-01-31, or a time such as 2027-01-31T12:00Z, not ${JSON.stringify(harmlessLine(text))}.`,
  )
}

function expiryText(expires: string | undefined): string {
  if (expires === undefined) return ''
  return Date.parse(expires) <= Date.now() ? 'expired' : expires.replace(/:\d\d\.\d+Z$/, 'Z')
}
