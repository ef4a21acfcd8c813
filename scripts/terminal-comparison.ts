// Draws the pictures of docs/reference/terminal-comparison.md: the same twelve moments in this program and in two others, at the same size, with a
// scripted provider on loopback. Needs a build, chromium, and a folder in which `npm install @openai/codex @earendil-works/pi-coding-agent` was run:
// `node -C @tapetree/source scripts/terminal-comparison.ts <folder> [moment…]`. With `-` as the folder it draws this program only.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { startFakeProvider, type FakeAnswer, type FakeProvider, type FakeStep } from '@tapetree/agent/testing'
import { pictures, type Picture } from '../tests/terminal/picture.ts'
import { startTerminal, type Sight, type Terminal } from '../tests/terminal/terminal.ts'
import { call, say, sayAndWait } from '../tests/peers/answers.ts'
import { builtCommand } from '../tests/terminal/command-path.ts'

const [folder = '', ...only] = process.argv.slice(2)
const size = { columns: 120, rows: 34 }
const out = 'docs/images/compare'

interface Call {
  name: string
  input: unknown
}

/** What differs between the programs: how they are configured and started, and how their tools are called. */
interface Program {
  command: readonly [string, ...string[]]
  /** `undefined`: nothing is configured, as at the first start. */
  configure: (
    home: string,
    provider: FakeProvider | undefined,
    permission: 'ask' | 'allow',
  ) => Promise<Record<string, string>>
  /** In sight when a message can be typed. */
  ready: Sight
  read: (path: string) => Call
  search: (pattern: string) => Call
  edit: (path: string, from: string, to: string) => Call
  bash: (command: string) => Call
  /** Absent: the program has none. */
  subagent?: (description: string, prompt: string) => Call
  plan?: { before?: string; call?: (text: string) => Call }
  tree: readonly string[]
  context: readonly string[]
}

const models = { id: 'model-1', context: 100_000, output: 8000 }

const programs: Record<string, Program> = {
  tapetree: {
    command: builtCommand,
    configure: async (home, provider, permission) => {
      const fake = provider && {
        api: 'openai-compatible',
        baseUrl: provider.baseUrl('openaiCompatible'),
        keyVariable: 'FAKE_API_KEY',
        models: [
          {
            id: models.id,
            contextTokens: models.context,
            outputTokens: models.output,
            prices: { input: 1, output: 5 },
          },
        ],
      }
      const mode = permission === 'ask' ? 'ask' : 'auto'
      const settings = { ...(fake && { model: `fake/${models.id}`, providers: { fake } }), permissions: { mode } }
      await mkdir(join(home, 'tapetree'), { mode: 0o700 })
      await writeFile(join(home, 'tapetree', 'settings.json'), JSON.stringify(settings), { mode: 0o600 })
      return {
        TAPETREE_HOME: join(home, 'tapetree'),
        XDG_RUNTIME_DIR: home,
        COLORTERM: 'truecolor',
        ...(fake && { FAKE_API_KEY: 'no-secret' }),
      }
    },
    ready: 'Enter sends',
    read: (path) => ({ name: 'read', input: { path } }),
    search: (pattern) => ({ name: 'grep', input: { pattern } }),
    edit: (path, oldText, newText) => ({ name: 'edit', input: { path, oldText, newText } }),
    bash: (command) => ({ name: 'bash', input: { command } }),
    subagent: (description, prompt) => ({ name: 'task', input: { description, prompt } }),
    plan: { before: '/mode plan', call: (plan) => ({ name: 'exit_plan', input: { plan } }) },
    tree: ['\u0014'],
    context: ['/context', '\r'],
  },
  codex: {
    command: [join(folder, 'node_modules/.bin/codex')],
    configure: async (home, provider, permission) => {
      const config = [
        'check_for_update_on_startup = false',
        `approval_policy = "${permission === 'ask' ? 'on-request' : 'never'}"`,
        `sandbox_mode = "${permission === 'ask' ? 'read-only' : 'danger-full-access'}"`,
        ...(provider
          ? [
              `model = "${models.id}"`,
              'model_provider = "fake"',
              `model_context_window = ${models.context}`,
              `[projects."${join(home, '..', 'shop')}"]`,
              'trust_level = "trusted"',
              '[model_providers.fake]',
              'name = "Fake"',
              `base_url = "${provider.baseUrl('openai')}"`,
              'env_key = "FAKE_API_KEY"',
              'wire_api = "responses"',
              'request_max_retries = 0',
            ]
          : []),
      ]
      await mkdir(join(home, '.codex'))
      await writeFile(join(home, '.codex/config.toml'), `${config.join('\n')}\n`)
      return { CODEX_HOME: join(home, '.codex'), COLORTERM: 'truecolor', FAKE_API_KEY: 'no-secret' }
    },
    ready: 'model-1',
    read: (path) => ({ name: 'exec_command', input: { cmd: `cat ${path}` } }),
    search: (pattern) => ({ name: 'exec_command', input: { cmd: `rg ${pattern}` } }),
    edit: (path, from, to) => ({ name: 'exec_command', input: { cmd: patchOf(path, from, to) } }),
    bash: (cmd) => ({
      name: 'exec_command',
      input: { cmd, sandbox_permissions: 'require_escalated', justification: 'Update the branch and run the tests?' },
    }),
    plan: { before: '\u001b[Z' },
    tree: ['\u001b', '\u001b'],
    context: ['/status', '\r'],
  },
  pi: {
    command: [join(folder, 'node_modules/.bin/pi')],
    configure: async (home, provider) => {
      await mkdir(join(home, '.pi/agent'), { recursive: true })
      const fake = provider && {
        baseUrl: provider.baseUrl('openaiCompatible'),
        api: 'openai-completions',
        apiKey: 'no-secret',
        compat: { supportsDeveloperRole: false, supportsReasoningEffort: false, supportsStore: false },
        models: [
          {
            id: models.id,
            contextWindow: models.context,
            maxTokens: models.output,
            cost: { input: 1, output: 5, cacheRead: 0, cacheWrite: 0 },
          },
        ],
      }
      await writeFile(join(home, '.pi/agent/models.json'), JSON.stringify({ providers: fake ? { fake } : {} }))
      await writeFile(
        join(home, '.pi/agent/settings.json'),
        JSON.stringify(fake ? { defaultProvider: 'fake', defaultModel: models.id, theme: 'dark' } : { theme: 'dark' }),
      )
      return { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0', COLORTERM: 'truecolor' }
    },
    ready: (rows) => rows.some((row) => /model-1|\/login|No models/.test(row)),
    read: (path) => ({ name: 'read', input: { path } }),
    search: (pattern) => ({ name: 'bash', input: { command: `grep -rn "${pattern}" .` } }),
    edit: (path, oldText, newText) => ({ name: 'edit', input: { path, edits: [{ oldText, newText }] } }),
    bash: (command) => ({ name: 'bash', input: { command } }),
    tree: ['/tree', '\r'],
    context: ['/session', '\r'],
  },
}

/** The change as codex applies it. */
function patchOf(path: string, from: string, to: string): string {
  const patch = ['*** Begin Patch', `*** Update File: ${path}`, '@@', `-  ${from}`, `+  ${to}`, '*** End Patch']
  return [`apply_patch <<'EOF'`, ...patch, 'EOF'].join('\n')
}

const source = `import { parse } from './parse.ts'

export interface Limits {
  timeout: number
  retries: number
}

export function limitsOf(text: string): Limits {
  const value = Number(text)
  if (Number.isFinite(value) && value >= 0) return { timeout: value, retries: 3 }
  throw new Error(\`Not a duration: \${text}\`)
}

export function describe({ timeout, retries }: Limits): string {
  return \`\${timeout} ms, \${retries} retries\`
}
`
const change = [
  'if (Number.isFinite(value) && value >= 0) return { timeout: value, retries: 3 }',
  'if (Number.isInteger(value) && value > 0) return { timeout: value, retries: 5 }',
] as const
const plan =
  '## A timeout of 0 is refused\n\n1. Change the check in `limits.ts`.\n2. Add a **test** for 0 and for -1.\n3. Run the tests.'
const command = 'git fetch origin && git rebase origin/main && npm ci && npm test -- --reporter=dot'

interface Scene {
  program: Program
  terminal: Terminal
  provider: FakeProvider
  /** For requests of the conversation; others, such as for a title, get a fixed answer. */
  script: (...steps: FakeStep[]) => void
}

interface Moment {
  permission?: 'ask' | 'allow'
  isFirst?: true
  /** Programs that cannot be driven there are left out. */
  needs?: 'subagent'
  play: (scene: Scene) => Promise<void>
}

const moments: Record<string, Moment> = {
  'first-run': { isFirst: true, play: () => Promise.resolve() },
  empty: { play: () => Promise.resolve() },
  'edit-permission': {
    play: async (scene) => {
      scene.script(
        calls(scene.program.read('limits.ts')),
        calls(scene.program.edit('limits.ts', ...change)),
        say('Done.'),
      )
      await send(scene, 'A timeout of 0 should be refused.', /Allow (?:edit|bash)\?|Would you like|Done\./)
    },
  },
  'bash-permission': {
    play: async (scene) => {
      scene.script(calls(scene.program.bash(command)), say('Done.'))
      await send(scene, 'Bring this branch up to date and test it.', /Allow (?:edit|bash)\?|Would you like|Done\./)
    },
  },
  diff: {
    permission: 'allow',
    play: async (scene) => {
      scene.script(
        calls(scene.program.read('limits.ts')),
        calls(scene.program.edit('limits.ts', ...change)),
        say('A timeout of **0** is refused now.'),
      )
      await send(scene, 'A timeout of 0 should be refused.', 'is refused now')
    },
  },
  reads: {
    permission: 'allow',
    play: async (scene) => {
      const { read, search } = scene.program
      scene.script(
        calls(read('limits.ts'), read('parse.ts')),
        calls(search('timeout'), read('README.md')),
        say('The limits are read in `limits.ts`.'),
      )
      await send(scene, 'Where are the limits read?', /The limits are read/)
    },
  },
  plan: {
    play: async (scene) => {
      const { before, call: propose } = scene.program.plan ?? {}
      if (before !== undefined && /^[\t\u001b]/.test(before)) scene.terminal.type(before)
      else if (before !== undefined) await slash(scene, before)
      scene.script(propose ? calls(propose(plan)) : say(plan))
      await send(scene, 'Plan it first.', 'Run the tests.')
    },
  },
  queue: {
    play: async (scene) => {
      scene.script(sayAndWait(['I am ', 'looking at it', ' now'], 'never', ['.']))
      await send(scene, 'Look at the parser.', 'I am looking')
      await send(scene, 'and add a test', 'and add a test')
      await send(scene, 'then update the changelog', 'then update the changelog')
    },
  },
  subagents: {
    permission: 'allow',
    needs: 'subagent',
    play: async (scene) => {
      const { subagent } = scene.program
      if (!subagent) return
      scene.script(
        calls(subagent('Read the parser', 'Read parse.ts'), subagent('Read the limits', 'Read limits.ts')),
        sayAndWait(['Reading the ', 'parser.'], 'never', ['.']),
        sayAndWait(['Reading the ', 'limits.'], 'never', ['.']),
      )
      await send(scene, 'Look at both files at once.', /Read the limits/)
      await setTimeout(4000)
    },
  },
  tree: {
    play: async (scene) => {
      scene.script(say('A queue in a file, with a lock.'), say('Then a crash can leave the lock behind.'))
      await send(scene, 'How should messages wait?', 'with a lock.')
      await setTimeout(2000)
      await send(scene, 'And if it is killed?', 'leave the lock behind.')
      await setTimeout(2000)
      await keys(scene, scene.program.tree)
    },
  },
  context: {
    permission: 'allow',
    play: async (scene) => {
      scene.script(calls(scene.program.read('limits.ts')), {
        ...say('The limits are read there.'),
        usage: { input: 23_000, output: 500 },
      })
      await send(scene, 'Where are the limits read?', 'read there.')
      await setTimeout(2000)
      await keys(scene, scene.program.context)
    },
  },
  error: {
    play: async (scene) => {
      const failure: FakeStep = { type: 'failure', error: 'quota', message: 'The credit of this account is used up.' }
      scene.script(...Array.from({ length: 20 }, () => failure))
      await send(scene, 'Where are the limits read?', /used up|quota/i)
    },
  },
}

function calls(...many: readonly Call[]): FakeAnswer {
  return call(...many.map((each, index) => ({ id: `call_${index}_${each.name}`, ...each })))
}

async function send({ terminal }: Scene, text: string, until: Sight): Promise<void> {
  terminal.type(text)
  await terminal.waitFor(text)
  await setTimeout(300)
  terminal.press('enter')
  await terminal.waitFor(until)
}

async function slash({ terminal }: Scene, text: string): Promise<void> {
  terminal.type(text)
  await setTimeout(1000)
  terminal.press('enter')
  await setTimeout(1000)
}

async function keys({ terminal }: Scene, all: readonly string[]): Promise<void> {
  for (const key of all) {
    terminal.type(key)
    await setTimeout(1500)
  }
}

async function shoot(program: Program, { isFirst, permission = 'ask', play }: Moment): Promise<Picture> {
  const root = await mkdtemp(join(tmpdir(), 'terminal-comparison-'))
  const [home, cwd] = [join(root, 'home'), join(root, 'shop')]
  for (const each of [home, cwd]) await mkdir(each)
  await writeFile(join(cwd, 'limits.ts'), source)
  await writeFile(join(cwd, 'parse.ts'), 'export const parse = Number\n')
  await writeFile(join(cwd, 'README.md'), '# Shop\n\nA timeout is a number of milliseconds.\n')
  // Other programs send what stricter servers would refuse.
  await using provider = await startFakeProvider({ strict: false })
  const steps: FakeStep[] = []
  provider.script((request) => {
    const isTalk = Array.isArray(request.body['tools']) && request.body['tools'].length > 0
    return (isTalk ? steps.shift() : undefined) ?? say('The limits of the shop')
  })
  const own = await program.configure(home, isFirst ? undefined : provider, permission)
  // Everything stays on this machine.
  const proxy = { HTTP_PROXY: 'http://127.0.0.1:9', HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1,localhost' }
  const env = { HOME: home, PATH: process.env['PATH'] ?? '', TERM: 'xterm-256color', LANG: 'C.UTF-8', ...proxy, ...own }
  await using terminal = startTerminal({ home: { cwd, env }, command: program.command, ...size, patienceMs: 20_000 })
  try {
    if (!isFirst) await terminal.waitFor(program.ready)
    await setTimeout(isFirst ? 15_000 : 1500)
    await play({ program, terminal, provider, script: (...more) => void steps.push(...more) })
  } catch (error) {
    console.log(String(error).slice(0, 3000))
  }
  await setTimeout(1500)
  const cells = terminal.cells()
  terminal.kill()
  await terminal.exit
  await rm(root, { recursive: true, force: true, maxRetries: 3 })
  return { cells }
}

await mkdir(out, { recursive: true })
for (const [moment, scene] of Object.entries(moments)) {
  if (only.length > 0 && !only.includes(moment)) continue
  const driven = Object.entries(programs)
    .filter(([name]) => folder !== '-' || name === 'tapetree')
    .filter(([, { subagent }]) => scene.needs === undefined || subagent)
  const shots = driven.map(async ([name, program]) => [name, await shoot(program, scene)] as const)
  const done = await Promise.all(shots)
  const drawn = await pictures(
    done.map(([, shot]) => shot),
    { scale: 1 },
  )
  for (const [index, [name]] of done.entries()) {
    const png = drawn[index]
    if (png) await writeFile(join(out, `${moment}-${name}.png`), png)
  }
  console.log(moment)
}
process.exit()
