import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { startFakeProvider, type FakeProvider, type FakeRequest, type FakeStep } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { createCodingSession, openCodingDriver } from '../../../packages/server/src/drivers/coding-driver.ts'
import type { LiveSession } from '../../../packages/server/src/live/live-session.ts'
import { LiveSessions } from '../../../packages/server/src/live/live-sessions.ts'
import { logOf } from '../../../packages/server/src/acp/testing/foreign-sessions.ts'
import { npm } from '../../../scripts/release/packages.ts'

export interface OpencodeOptions {
  folder: string
  say: (line: string) => void
}

const patienceMs = 120_000

/**
 * opencode as a foreign agent, with the fake provider as its model: a turn with a call and a permission, a death in mid-turn, and what
 * comes after it. Gives what is wrong; that it cannot be installed is wrong, too.
 */
export async function playOpencode({ folder, say }: OpencodeOptions): Promise<string[]> {
  const binary = await install(folder).catch((error: unknown) => error as Error)
  if (typeof binary !== 'string') return [`opencode could not be installed: ${binary.message.slice(0, 500)}`]
  await using provider = await startFakeProvider({ strict: false })
  const trial = new Trial(folder, { binary, provider })
  try {
    await trial.play()
    say(`opencode: ${trial.told.join(', ')}`)
    return []
  } catch (error) {
    return [`opencode: ${String(error)}; so far: ${trial.told.join(', ')}; its log: ${await trial.log()}`]
  } finally {
    await trial.close()
  }
}

/** Its program is in a package for each platform, and needs no install script. */
async function install(folder: string): Promise<string> {
  const place = join(folder, 'installed')
  await mkdir(place)
  await writeFile(join(place, 'package.json'), '{ "private": true }\n')
  await npm(['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', 'opencode-ai'], {
    cwd: place,
  })
  const binary = join(place, `node_modules/opencode-${process.platform}-${process.arch}/bin`)
  if (!existsSync(join(binary, 'opencode')))
    throw new Error(`There is no program for ${process.platform} ${process.arch}.`)
  return binary
}

const gate = 'killed'
const killed = 'was killed in mid-turn'

class Trial {
  readonly told: string[] = []
  readonly #provider: FakeProvider
  readonly #cwd: string
  readonly #binary: string
  readonly #sessions: LiveSessions
  readonly #closeStore: () => Promise<void>
  #live: LiveSession | undefined
  #commands = 0

  constructor(folder: string, { binary, provider }: { binary: string; provider: FakeProvider }) {
    this.#provider = provider
    this.#binary = binary
    this.#cwd = join(folder, 'project')
    provider.script((request) => answerTo(request, this.told))
    const home = join(folder, 'home')
    const store = openFileStore({ folder: join(folder, 'sessions') })
    this.#closeStore = () => store.close()
    const env = { PATH: `${binary}:/usr/bin:/bin`, HOME: home, ...quiet(provider) }
    this.#sessions = new LiveSessions({
      store,
      create: (created) => createCodingSession(store, created),
      openDriver: async (id) => {
        await mkdir(join(home, '.config/opencode'), { recursive: true })
        // It installs a package of its own for plugins in the background, which no setting turns off: it finds none.
        await writeFile(join(home, '.npmrc'), `registry=${provider.url}/\nfetch-retries=0\n`)
        return openCodingDriver(id, { store, home, env })
      },
    })
  }

  async play(): Promise<void> {
    await mkdir(this.#cwd)
    const live = await this.#sessions.get(await this.#sessions.create({ cwd: this.#cwd, agent: 'opencode' }))
    this.#live = live
    await this.#perform('prompt', { text: 'Please make the file.' })
    await this.#until('a permission', () => live.session.pendingPermissions.length === 1)
    if (existsSync(join(this.#cwd, 'made.txt'))) throw new Error('The command ran before it was allowed.')
    this.told.push('asked for permission')
    const [request] = live.session.pendingPermissions
    await this.#perform('permission.answer', { request_id: request?.requestId, outcome: 'allowed' })
    await this.#atRest()
    if ((await readFile(join(this.#cwd, 'made.txt'), 'utf8')) !== 'made\n') throw new Error('The command did not run.')
    await this.#expect([
      'call execute',
      'permission_result allowed',
      'result:',
      'assistant: It is made.',
      'run_end completed',
    ])
    this.told.push('completed a turn with a call')
    await this.#perform('prompt', { text: 'Now wait.' })
    await this.#until('second turn', () => this.#provider.requests.some(({ body }) => isAsked(body, 'Now wait.')))
    this.told.push(killed)
    for (const pid of this.#pids()) process.kill(pid, 'SIGKILL')
    await this.#atRest()
    this.#provider.release(gate)
    await this.#expect(['user: Now wait.', 'assistant: I continue.', 'run_end completed'])
    const last = JSON.stringify(this.#provider.requests.findLast(({ body }) => Array.isArray(body['tools']))?.body)
    if (last.split('Please make the file.').length !== 2)
      throw new Error('After its death it does not know its session, or knows it twice.')
    this.told.push('continued its session')
  }

  async log(): Promise<string> {
    return this.#live ? JSON.stringify(await logOf(this.#live)).slice(0, 3000) : 'none'
  }

  async close(): Promise<void> {
    this.#provider.release(gate)
    await this.#sessions.close()
    await this.#closeStore()
  }

  async #perform(op: 'prompt' | 'permission.answer', args: Record<string, unknown>): Promise<void> {
    const ack = await (this.#live as LiveSession).perform(`cmd-${++this.#commands}`, 'me', { op, args })
    if (!ack.ok) throw new Error(`${op} was refused: ${JSON.stringify(ack)}`)
  }

  async #atRest(): Promise<void> {
    const { driver, session } = this.#live as LiveSession
    await this.#until('rest', () => !driver.isBusy && session.openRun === null)
  }

  /** The log has these, in this order. */
  async #expect(wanted: readonly string[]): Promise<void> {
    const rest = [...wanted]
    for (const line of await logOf(this.#live as LiveSession)) if (line.startsWith(rest[0] ?? '\0')) rest.shift()
    if (rest.length > 0) throw new Error(`The log lacks ${rest.join(', ')}.`)
  }

  async #until(what: string, isTrue: () => boolean): Promise<void> {
    const end = performance.now() + patienceMs
    while (!isTrue()) {
      if (performance.now() > end) throw new Error(`There was no ${what} after ${patienceMs / 1000} s.`)
      await setTimeout(20)
    }
  }

  #pids(): number[] {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    return pids.map(Number).filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`PATH=${this.#binary}:`)
      } catch {
        return false
      }
    })
  }
}

function answerTo({ body }: FakeRequest, told: readonly string[]): FakeStep {
  const say = (...content: Extract<FakeStep, { type: 'answer' }>['content']): FakeStep => ({ type: 'answer', content })
  const text = (...chunks: string[]) => ({ type: 'text' as const, chunks })
  const isOfTurn = Array.isArray(body['tools']) && body['tools'].length > 0
  if (!isOfTurn) return say(text('A title'))
  const messages = (body['messages'] ?? []) as { role: string; content: unknown }[]
  if (messages.at(-1)?.role === 'tool') return say(text('It is made.'))
  // It is sent the prompt again, or is told to continue.
  if (told.includes(killed)) return say(text('I continue.'))
  if (isAsked(body, 'Now wait.')) return say(text('I wait'), { type: 'wait', gate })
  const input = { command: 'echo made > made.txt', description: 'Makes the file' }
  return say({ type: 'tool_call', id: 'call-1', name: 'bash', chunks: [JSON.stringify(input)] })
}

/** Whether this is the last message of a request. */
function isAsked({ messages, tools }: Record<string, unknown>, text: string): boolean {
  const last = Array.isArray(messages) ? (messages.at(-1) as unknown) : undefined
  return Array.isArray(tools) && JSON.stringify(last ?? '').includes(text)
}

/** Its model is the fake provider. It looks for no updates, no lists of models and no parts to download. */
function quiet(provider: FakeProvider): Record<string, string> {
  const model = { name: 'Model 1', tool_call: true, limit: { context: 100_000, output: 8000 } }
  const config = {
    model: 'fake/model-1',
    small_model: 'fake/model-1',
    autoupdate: false,
    share: 'disabled',
    permission: { bash: 'ask', edit: 'ask' },
    enabled_providers: ['fake'],
    provider: {
      fake: {
        npm: '@ai-sdk/openai-compatible',
        name: 'Fake',
        options: { baseURL: provider.baseUrl('openaiCompatible'), apiKey: 'no-secret' },
        models: { 'model-1': model },
      },
    },
  }
  const off = [
    'AUTOUPDATE',
    'MODELS_FETCH',
    'LSP_DOWNLOAD',
    'DEFAULT_PLUGINS',
    'SHARE',
    'CLAUDE_CODE',
    'EMBEDDED_WEB_UI',
  ]
  return {
    OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
    // Whatever it looks for elsewhere, it does not reach.
    ...{ HTTP_PROXY: provider.url, HTTPS_PROXY: provider.url, NO_PROXY: '127.0.0.1' },
    ...Object.fromEntries(off.map((name) => [`OPENCODE_DISABLE_${name}`, '1'])),
  }
}
