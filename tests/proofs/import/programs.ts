import type { FakeContent, FakeProvider, FakeRequest, FakeStep } from '@tapetree/agent/testing'
import { existsSync, globSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { SourceName } from '../../../packages/cli/src/import/import-source.ts'
import { picture } from './picture.ts'

interface RunOptions {
  input?: string
  /** The input stays open until the program is ended. */
  isOpen?: boolean
  timeoutMs?: number
  until?: Promise<unknown>
}

export interface Stage {
  home: string
  project: string
  provider: FakeProvider
  /** Runs the program in the project; ends it when `until` resolves. */
  run: (args: readonly string[], options?: RunOptions) => Promise<string>
}

/** How a program is driven, and what it wrote. */
export interface Program {
  package: string
  /** Patterns in `node_modules`; the first file that exists is run. */
  binaries: readonly string[]
  env: (provider: FakeProvider) => Record<string, string>
  play: (stage: Stage) => Promise<void>
  /** Text by the path in the home. */
  files: (stage: Stage) => Promise<Record<string, string>>
}

const question = 'How is the cache keyed?'
const pictureQuestion = 'What is in this picture?'
const later = 'And after that?'
const other = 'No, something else.'
const wait = 'Wait for it'
const signature = 'c2lnbmF0dXJlLW9mLXRoaW5raW5n'
const usage = { input: 1200, output: 80, cacheRead: 1000, reasoning: 10 }

/** The calls of the first answer, and the one that never ends, with the tools of the program. */
interface Calls {
  read: { name: string; input: Record<string, unknown> }
  count: { name: string; input: Record<string, unknown> }
  hang: { name: string; input: Record<string, unknown> }
}

/** Answers by what was said last. `onHang` is called when the answer with the call that never ends was sent. */
function converse(provider: FakeProvider, calls: Calls, { grow }: { grow?: string } = {}): void {
  const call = (id: string, { name, input }: Calls['read']): FakeContent => {
    return { type: 'tool_call', id, name, chunks: [JSON.stringify(input)] }
  }
  const answer = (...content: FakeContent[]): FakeStep => ({ type: 'answer', usage, content })
  const say = (text: string): FakeContent => ({ type: 'text', chunks: [text] })
  provider.script((request: FakeRequest) => {
    const said = lastSaid(request.body)
    const hasTools = JSON.stringify(request.body['tools'] ?? []).length > 10
    if (/tool_result|function_call_output|functionResponse/.test(said))
      return answer(say('The cache is keyed by path.'))
    if (hasTools && said.includes(question)) {
      return answer(
        { type: 'reasoning', chunks: ['The notes may say it.'], signature },
        say('I read the notes.'),
        call('toolu_01AAAAAAAAAAAAAAAAAAAAAA', calls.read),
        call('toolu_01BBBBBBBBBBBBBBBBBBBBBB', calls.count),
      )
    }
    if (hasTools && said.includes(wait)) return answer(call('toolu_01CCCCCCCCCCCCCCCCCCCCCC', calls.hang))
    if (grow !== undefined && said.includes(grow)) {
      return { type: 'answer', usage: { input: 300_000, output: 80 }, content: [say('It grew.')] }
    }
    if (hasTools && said.includes(pictureQuestion)) return answer(say('One color.'))
    return answer(say(`This is answer ${request.number}.`))
  })
}

function lastSaid(body: Record<string, unknown>): string {
  const list = body['messages'] ?? body['input'] ?? body['contents']
  return JSON.stringify(Array.isArray(list) ? (list.at(-1) as unknown) : list)
}

/** Resolves a while after the call that never ends was requested, when the program has written it. */
async function hanging(provider: FakeProvider): Promise<void> {
  while (!provider.requests.some(({ body }) => lastSaid(body).includes(wait))) {
    await provider.request(provider.requests.length + 1)
  }
  await new Promise((resolve) => setTimeout(resolve, 4000))
}

async function textsOf(home: string, pattern: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for (const path of globSync(join(home, pattern)).sort()) files[relative(home, path)] = await readFile(path, 'utf8')
  return files
}

const hang = 'tail -f /dev/null'

export const programs: Record<SourceName, Program> = {
  'claude-code': {
    package: '@anthropic-ai/claude-code',
    binaries: ['@anthropic-ai/claude-code-linux-x64/claude', '@anthropic-ai/claude-code/cli.js'],
    env: ({ url }) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
    play: async ({ provider, project, run, home }) => {
      converse(provider, {
        read: { name: 'Read', input: { file_path: join(project, 'notes.md') } },
        count: { name: 'Bash', input: { command: 'wc -l notes.md', description: 'Count lines' } },
        hang: { name: 'Bash', input: { command: hang, description: 'Wait' } },
      })
      // The list of tools takes what follows as its own, unless that is an option.
      const options = ['-p', '--allowedTools', 'Bash,Read', '--model', 'claude-sonnet-4-5']
      await run([...options, question])
      const content = [
        { type: 'text', text: pictureQuestion },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture.toString('base64') } },
      ]
      const streams = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose']
      const input = `${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`
      await run([...options, '--continue', ...streams], { input })
      // Goes on after the first answer: a branch.
      const [file = ''] = globSync(join(home, '.claude/projects/*/*.jsonl'))
      const first = (await readFile(file, 'utf8'))
        .split('\n')
        .find((line) => line.includes('"The cache is keyed by path."'))
      const { uuid, sessionId } = JSON.parse(first ?? '{}') as { uuid?: string; sessionId?: string }
      await run([...options, '--resume', String(sessionId), '--resume-session-at', String(uuid), other])
      await run([...options, '--continue', '/compact'])
      await run([...options, '--continue', later])
      await run([...options, '--continue', wait], { until: hanging(provider) })
    },
    files: ({ home }) => textsOf(home, '.claude/projects/*/*.jsonl'),
  },
  codex: {
    package: '@openai/codex',
    binaries: ['@openai/codex-linux-x64/vendor/*/bin/codex'],
    env: () => ({ FAKE_KEY: 'none' }),
    play: async ({ provider, home, run }) => {
      await mkdir(join(home, '.codex'))
      await writeFile(
        join(home, '.codex/config.toml'),
        [
          'model = "gpt-5-codex"',
          'model_provider = "fake"',
          'model_auto_compact_token_limit = 200000',
          'check_for_update_on_startup = false',
          '[analytics]\nenabled = false',
          `[model_providers.fake]\nname = "fake"\nbase_url = "${provider.url}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"`,
        ].join('\n'),
      )
      const shell = (command: string): Calls['read'] => ({
        name: 'exec_command',
        input: { cmd: command, yield_time_ms: 30_000 },
      })
      converse(
        provider,
        { read: shell('cat notes.md'), count: shell('wc -l notes.md'), hang: shell(hang) },
        { grow: 'Grow' },
      )
      // The recording may have no network; the sandbox of the program would need more of the machine than that.
      const exec = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox']
      await run([...exec, question])
      await run([...exec, 'resume', '--last', '-i', 'picture.png', '--', pictureQuestion])
      await run([...exec, 'resume', '--last', 'Grow'])
      await run([...exec, 'resume', '--last', later])
      await run([...exec, 'resume', '--last', wait], { until: hanging(provider) })
    },
    files: ({ home }) => textsOf(home, '.codex/sessions/*/*/*/rollout-*.jsonl'),
  },
  pi: {
    // Later versions cannot be installed: packages that they need were not published.
    package: '@earendil-works/pi-coding-agent@0.87.1',
    binaries: ['.bin/pi'],
    env: () => ({ PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1' }),
    play: async ({ provider, home, run }) => {
      await mkdir(join(home, '.pi/agent'), { recursive: true })
      const model = {
        id: 'fake-1',
        name: 'Fake',
        reasoning: true,
        input: ['text', 'image'],
        contextWindow: 200_000,
        maxTokens: 8000,
        cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
      }
      const fake = { baseUrl: provider.url, api: 'anthropic-messages', apiKey: 'none', models: [model] }
      await writeFile(join(home, '.pi/agent/models.json'), JSON.stringify({ providers: { fake } }))
      await writeFile(
        join(home, '.pi/agent/settings.json'),
        JSON.stringify({ compaction: { enabled: true, keepRecentTokens: 1, reserveTokens: 1000 } }),
      )
      converse(provider, {
        read: { name: 'read', input: { path: 'notes.md' } },
        count: { name: 'bash', input: { command: 'wc -l notes.md' } },
        hang: { name: 'bash', input: { command: hang } },
      })
      const options = ['--provider', 'fake', '--model', 'fake-1', '--thinking', 'low']
      await run(['-p', ...options, question])
      await run(['-p', ...options, '--continue', '@picture.png', pictureQuestion])
      const [file = ''] = globSync(join(home, '.pi/agent/sessions/*/*.jsonl'))
      const commands = [
        { type: 'set_session_name', name: 'Cache keys' },
        { type: 'bash', command: 'ls' },
        { type: 'compact' },
      ]
      await run(['--mode', 'rpc', ...options, '--continue'], {
        input: lines(commands),
        isOpen: true,
        timeoutMs: 10_000,
      })
      await branch(file)
      await run(['-p', ...options, '--continue', later])
      await run(['-p', ...options, '--continue', wait], { until: hanging(provider) })
    },
    files: ({ home }) => textsOf(home, '.pi/agent/sessions/*/*.jsonl'),
  },
  opencode: {
    package: 'opencode-ai',
    binaries: ['opencode-linux-x64/bin/opencode'],
    env: () => ({
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    }),
    play: async ({ provider, home, project, run }) => {
      await mkdir(join(home, '.config/opencode'), { recursive: true })
      const model = {
        name: 'Fake',
        reasoning: true,
        attachment: true,
        tool_call: true,
        cost: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
        limit: { context: 200_000, output: 8000 },
        modalities: { input: ['text', 'image'], output: ['text'] },
      }
      const fake = {
        npm: '@ai-sdk/anthropic',
        options: { baseURL: `${provider.url}/v1`, apiKey: 'none' },
        models: { 'fake-1': model },
      }
      await writeFile(
        join(home, '.config/opencode/opencode.json'),
        JSON.stringify({
          autoupdate: false,
          share: 'disabled',
          permission: 'allow',
          model: 'fake/fake-1',
          small_model: 'fake/fake-1',
          enabled_providers: ['fake'],
          provider: { fake },
        }),
      )
      converse(
        provider,
        {
          read: { name: 'read', input: { filePath: join(project, 'notes.md') } },
          count: { name: 'bash', input: { command: 'wc -l notes.md', description: 'Count lines' } },
          hang: { name: 'bash', input: { command: hang, description: 'Wait' } },
        },
        { grow: 'Grow' },
      )
      await run(['run', question])
      await run(['run', '--continue', '--file', 'picture.png', '--', pictureQuestion])
      await run(['run', '--continue', 'Grow'])
      await run(['run', '--continue', later])
      await run(['run', '--continue', wait], { until: hanging(provider) })
    },
    /** As JSON of the rows: a database could not be reviewed. */
    files: async ({ home }) => {
      const path = join(home, '.local/share/opencode/opencode.db')
      if (!existsSync(path)) return {}
      const database = new DatabaseSync(path)
      const rows = ['session', 'message', 'part'].flatMap((table) =>
        database
          .prepare(`SELECT * FROM ${table} ORDER BY time_created, id`)
          .all()
          .map((row) => ({ table, row })),
      )
      database.close()
      return { 'opencode-rows.jsonl': lines(rows) }
    },
  },
  gemini: {
    package: '@google/gemini-cli',
    binaries: ['.bin/gemini'],
    env: ({ url }) => ({ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: url, GEMINI_CLI_TRUST_WORKSPACE: 'true' }),
    play: async ({ provider, home, project, run }) => {
      await mkdir(join(home, '.gemini'))
      await writeFile(
        join(home, '.gemini/settings.json'),
        JSON.stringify({
          security: { auth: { selectedType: 'gemini-api-key' } },
          general: { enableAutoUpdate: false },
          privacy: { usageStatisticsEnabled: false },
          telemetry: { enabled: false },
          model: { name: 'gemini-2.5-pro' },
        }),
      )
      converse(provider, {
        read: { name: 'read_file', input: { file_path: join(project, 'notes.md') } },
        count: { name: 'run_shell_command', input: { command: 'wc -l notes.md', description: 'Count lines' } },
        hang: { name: 'run_shell_command', input: { command: hang, description: 'Wait' } },
      })
      const options = ['--yolo', '--skip-trust']
      await run([...options, '-p', question])
      await run([...options, '--resume', 'latest', '-p', `${pictureQuestion} @picture.png`])
      await run([...options, '--resume', 'latest', '-p', later])
      await run([...options, '--resume', 'latest', '-p', wait], { until: hanging(provider) })
    },
    files: async ({ home }) => ({
      ...(await textsOf(home, '.gemini/tmp/*/chats/*')),
      ...(await textsOf(home, '.gemini/tmp/*/.project_root')),
    }),
  },
}

function lines(commands: readonly unknown[]): string {
  return commands.map((command) => `${JSON.stringify(command)}\n`).join('')
}

/** What the program writes when its user goes back to an earlier entry and says something else: an entry with that parent. */
async function branch(file: string): Promise<void> {
  const text = await readFile(file, 'utf8')
  const entries = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  const answer = entries.find((entry) => JSON.stringify(entry).includes('"The cache is keyed by path."'))
  const timestamp = entries.at(-1)?.['timestamp']
  const content = [{ type: 'text', text: other }]
  const message = { role: 'user', content, timestamp: Date.parse(String(timestamp)) }
  const entry = { type: 'message', id: 'b0b0b0b0', parentId: answer?.['id'], timestamp, message }
  await writeFile(file, `${text}${JSON.stringify(entry)}\n`)
}
