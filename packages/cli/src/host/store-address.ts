import type { LogStore } from '@tapetree/session/log-store'
import type { CopyTarget } from '@tapetree/session/stores/copy'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { textOption, type Invocation } from '../command-line/command.ts'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import type { Io } from '../command-line/io.ts'
import { harmlessLine } from '../text/harmless.ts'

/** Where sessions are stored, as named on the command line. `shown` has no password. */
export type StoreAddress =
  | { type: 'folder'; folder: string; shown: string }
  | { type: 'postgres'; url: string; shown: string }

/**
 * Reads a store as written after an option: a folder, `postgres://…`, or `@file` with either of them inside. Rejects a
 * password on the command line, because other users can read that.
 */
export async function storeAddress(
  text: string,
  { io, option }: { io: Pick<Io, 'cwd'>; option: string },
): Promise<StoreAddress> {
  const isFile = text.startsWith('@')
  const address = addressOf(isFile ? await contentOf(resolve(io.cwd, text.slice(1)), option) : text, { io, option })
  if (!isFile && address.type === 'postgres' && passwordOf(address.url) !== '') {
    throw new Failure(exitCodes.usage, `--${option} has a password, and other users can see the command line.`, {
      type: 'visible-password',
      why: 'Put the password into PGPASSWORD or a password file (~/.pgpass), or the whole URL into a private file.',
      next: [`tapetree … --${option} @<file>`],
    })
  }
  return address
}

/** The store of the option `--store`, or of the variable `TAPETREE_STORE`, which may have a password. */
export async function chosenStore(
  invocation: Invocation,
  io: Pick<Io, 'cwd' | 'env'>,
): Promise<StoreAddress | undefined> {
  const given = textOption(invocation, 'store')
  if (given !== undefined) return storeAddress(given, { io, option: 'store' })
  const text = io.env[storeVariable]?.trim() ?? ''
  if (text === '') return undefined
  const content = text.startsWith('@') ? await contentOf(resolve(io.cwd, text.slice(1)), storeVariable) : text
  return addressOf(content, { io, option: 'store' })
}

const storeVariable = 'TAPETREE_STORE'

function addressOf(text: string, { io, option }: { io: Pick<Io, 'cwd'>; option: string }): StoreAddress {
  const help = option === 'store' ? ['tapetree serve --help'] : ['tapetree sessions copy --help']
  if (text.trim() === '') throw usageFailure(`--${option} needs a folder or the URL of a database.`, help)
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(text)) {
    const folder = resolve(io.cwd, text)
    return { type: 'folder', folder, shown: harmlessLine(folder) }
  }
  const url = URL.parse(text)
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol)) {
    throw usageFailure(`--${option} must be a folder or a URL that starts with postgres://.`, help)
  }
  return { type: 'postgres', url: text, shown: withoutPassword(url) }
}

function passwordOf(text: string): string {
  const url = URL.parse(text)
  return url ? `${url.password}${url.searchParams.get('password') ?? ''}` : ''
}

function withoutPassword(url: URL): string {
  const shown = new URL(url)
  shown.password = ''
  shown.search = ''
  shown.hash = ''
  return harmlessLine(shown.href)
}

/** A file with a password must be private, like the other files with secrets. */
async function contentOf(file: string, option: string): Promise<string> {
  try {
    const { mode, uid } = await stat(file)
    const isPrivate = process.platform === 'win32' || ((mode & 0o077) === 0 && uid === process.getuid?.())
    const content = (await readFile(file, 'utf8')).trim()
    if (isPrivate || passwordOf(content) === '') return content
    throw new Failure(exitCodes.configuration, `Other users can read ${harmlessLine(file)}, which has a password.`, {
      type: 'file-not-private',
      next: [`chmod 600 ${harmlessLine(file)}`],
    })
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    throw new Failure(exitCodes.notFound, `The file ${harmlessLine(file)} of ${option} cannot be read.`, {
      type: 'file-not-found',
      cause,
    })
  }
}

/** Opens a store to read it. A folder must exist. The caller closes it. */
export async function openLogStore(address: StoreAddress): Promise<LogStore> {
  if (address.type === 'postgres') {
    const { PostgresLogStore } = await import('@tapetree/session/stores/postgres')
    return new PostgresLogStore({ url: address.url, connections: 4, patienceMs: 5000 })
  }
  const found = await stat(address.folder).catch(() => undefined)
  if (!found?.isDirectory()) {
    throw new Failure(exitCodes.notFound, `There is no folder ${address.shown}.`, { type: 'folder-not-found' })
  }
  const { FileLogStore } = await import('@tapetree/session/stores/file')
  return new FileLogStore({ folder: address.folder })
}

/** Opens a store to copy into it. A folder is created if it is missing. The caller closes it. */
export async function openCopyTarget(address: StoreAddress): Promise<CopyTarget> {
  if (address.type === 'postgres') {
    const { postgresCopyTarget } = await import('@tapetree/session/stores/postgres')
    return postgresCopyTarget(address.url)
  }
  await mkdir(address.folder, { recursive: true, mode: 0o700 })
  const { fileCopyTarget } = await import('@tapetree/session/stores/copy')
  return fileCopyTarget({ folder: address.folder })
}

/**
 * Checks that a database can be used, and fails with a command that helps otherwise. The pools of a store would wait a minute
 * for a database that is not there.
 */
export async function requireDatabase({ url, shown }: { url: string; shown: string }): Promise<void> {
  const { databaseState } = await import('@tapetree/session/stores/postgres')
  const { schemaVersion, neededVersion } = await databaseState(url).catch((cause: unknown) => {
    throw new Failure(exitCodes.configuration, `The store ${shown} cannot be used.`, {
      type: 'store-unreachable',
      why: cause instanceof Error ? cause.message : String(cause),
      next: ['tapetree doctor --store <store>'],
      cause,
    })
  })
  if (schemaVersion === neededVersion) return
  const isOlder = schemaVersion < neededVersion
  throw new Failure(
    exitCodes.configuration,
    `The schema of the store ${shown} ${isOlder ? 'is missing or too old' : 'is newer than this version of tapetree'}.`,
    {
      type: 'store-schema',
      why: `It has version ${schemaVersion}, and ${neededVersion} is needed.`,
      next: isOlder ? ['tapetree store migrate <store>'] : [],
    },
  )
}
