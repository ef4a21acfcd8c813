import { createModelRegistry } from '@tapetree/agent/models'
import type { SessionStore } from '@tapetree/session'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { parse } from '../../command-line/parse.ts'
import type { Io, Output } from '../../command-line/io.ts'
import type { LocalSource } from '../../host/local-source.ts'
import type { SessionHost } from '../../host/session-host.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import type {
  ChatServices,
  KeyProblem,
  KeyProvider,
  ShareFormat,
  SharedFile,
  UsageRow,
} from '../../tui/chat-services.ts'
import { sessionCommands, usageCommands } from '../table/sessions.ts'
import { contextOverview } from './context-overview.ts'
import { acceptProposal, permissionOverview } from './permission-overview.ts'
import { remember, rememberedSettings } from './remembered.ts'
import { reviewServers } from './server-review.ts'

export interface ServicesOptions {
  io: Io
  store: SessionStore
  host: SessionHost
  /** Its `folder` is the one of the session that is shown. */
  source: Pick<LocalSource, 'folder'>
}

/** The services of the chat, by the sessions and settings of this machine. */
export function chatServices({ io, store, host, source }: ServicesOptions): ChatServices {
  return {
    permissions: (sessionId) => permissionOverview(sessionId, { io, store, cwd: source.folder }),
    acceptProposal: (proposal) => acceptProposal(proposal, { io, cwd: source.folder }),
    servers: () => reviewServers(io, source.folder),
    context: async (sessionId) => {
      await using session = await store.open(sessionId, { readOnly: true })
      return await contextOverview(session)
    },
    usage: (days) => usageByModel(days, io),
    share: (sessionId, format) => shareSession(sessionId, format, { ...io, cwd: source.folder }),
    providers: () => keyProviders(io, source.folder),
    checkKey: (provider, key) => checkKey({ provider, key }, io, source.folder),
    storeKey: async (provider, key) => {
      const { credentials } = await surroundingsOf(io, { cwd: source.folder })
      const { source: place, notes } = await credentials.store(provider, key)
      return place === 'keyring' ? `Stored the key for ${provider} in the system keyring.` : (notes.at(-1) ?? '')
    },
    remember: (choices, where) => remember(choices, where, { io, cwd: source.folder }),
    remembered: () => rememberedSettings({ io, cwd: source.folder }),
    release: (sessionId) => host.sessions.release(sessionId),
  }
}

async function usageByModel(days: number, io: Io): Promise<UsageRow[]> {
  const { rows } = (await resultOf(['usage', '--by', 'model', '--since', `${days}d`], io)) as {
    rows: { key: string; calls: number; input_tokens: number; output_tokens: number; cost: number }[]
  }
  return rows.map(({ key, calls, input_tokens: input, output_tokens: output, cost }) => ({
    model: key,
    calls,
    tokens: input + output,
    cost,
  }))
}

const endings: Record<ShareFormat, string> = { html: 'html', markdown: 'md', bundle: 'tapetree' }

async function shareSession(sessionId: string, format: ShareFormat, io: Io): Promise<SharedFile> {
  const output = await newPath(join(io.cwd, `session-${sessionId}`), endings[format])
  const result = (await resultOf(['sessions', 'export', sessionId, '--format', format, '--output', output], io)) as {
    bytes: number
    redacted: Record<string, number>
  }
  const redacted = Object.values(result.redacted).reduce((sum, count) => sum + count, 0)
  return { path: output, bytes: result.bytes, redacted }
}

/** A shared session does not replace an older one. */
async function newPath(base: string, ending: string): Promise<string> {
  for (let number = 1; ; number++) {
    const path = `${base}${number === 1 ? '' : `-${number}`}.${ending}`
    if (!(await stat(path).catch(() => undefined))) return path
  }
}

/** Those that the user has added come first. */
async function keyProviders(io: Io, cwd: string): Promise<KeyProvider[]> {
  const { registry, settings } = await surroundingsOf(io, { cwd })
  const own = new Set(Object.keys(settings.values.providers))
  const usable = new Set(
    (await registry.list()).filter(({ key }) => key.type === 'found').map(({ provider }) => provider),
  )
  return registry.providers
    .filter(({ keyVariables }) => keyVariables.length > 0)
    .map(({ id, name }) => ({ id, name, hasKey: usable.has(id) }))
    .sort((left, right) => Number(own.has(right.id)) - Number(own.has(left.id)))
}

async function checkKey(
  { provider, key }: { provider: string; key: string },
  io: Io,
  cwd: string,
): Promise<KeyProblem | undefined> {
  const { settings } = await surroundingsOf(io, { cwd })
  const registry = createModelRegistry({
    providers: settings.values.providers,
    credentials: { keyFor: () => Promise.resolve({ value: key, origin: 'what was typed' }) },
    env: {},
  })
  const check = await registry.validateKey(provider, { signal: io.signal })
  return check.type === 'ok' ? undefined : { message: check.message, isRefused: check.type === 'refused' }
}

/** The JSON result of a command, run without a terminal. Rejects with its failure. */
async function resultOf(args: readonly string[], io: Io): Promise<unknown> {
  const parsed = parse([...args, '--json'], [...sessionCommands, ...usageCommands])
  if (parsed.type !== 'run') throw new TypeError(`${args.join(' ')} is not a command.`)
  const { invocation } = parsed
  const [stdout, stderr] = [new KeptOutput(), new KeptOutput()]
  const run = await invocation.spec.load()
  await run(invocation, { ...io, stdin: Readable.from([]), stdout, stderr })
  return JSON.parse(stdout.text)
}

class KeptOutput implements Output {
  text = ''

  write(text: string | Uint8Array, done?: () => void): boolean {
    this.text += Buffer.from(text).toString()
    if (done) queueMicrotask(done)
    return true
  }
}
