import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

/** The same programs, written for each library. */
export const programs = ['support-bot', 'eval-harness', 'two-screens', 'structured-answer'] as const
export type Program = (typeof programs)[number]

/** A library that the programs are written for. */
export interface Contender {
  name: string
  version: string
  /** The files of a program, from the root of the repository. The first is started first. */
  files: (program: Program) => string[]
  /** Flags for Node. */
  flags: string[]
  /** Writes the configuration files that the library reads, and returns environment variables. */
  prepare: (place: { home: string; baseUrl: string }) => Promise<Record<string, string>>
}

/** Has the lock file of the other libraries. They are installed there. */
export const rivalsFolder = 'tests/comparison/rivals'

export const tapetree: Contender = {
  name: 'tapetree',
  version: (JSON.parse(readFileSync('packages/agent/package.json', 'utf8')) as { version: string }).version,
  files: (program) => {
    if (program === 'support-bot') return ['examples/support-bot/support-bot.ts']
    if (program === 'eval-harness') return ['examples/eval-harness/eval-harness.ts']
    return filesIn('tests/comparison/tapetree', program)
  },
  flags: ['-C', '@tapetree/source'],
  prepare: async ({ baseUrl }) => ({ ANTHROPIC_BASE_URL: `${baseUrl}/v1` }),
}

const { dependencies: versions } = JSON.parse(readFileSync(`${rivalsFolder}/package.json`, 'utf8')) as {
  dependencies: Record<string, string>
}

export const rivals: Contender[] = [
  {
    name: 'AI SDK',
    version: versions['ai'] ?? '',
    files: (program) => filesIn('tests/comparison/rivals/ai-sdk', program),
    flags: [],
    prepare: async ({ baseUrl }) => ({ ANTHROPIC_BASE_URL: `${baseUrl}/v1` }),
  },
  {
    name: 'pi',
    version: versions['@earendil-works/pi-coding-agent'] ?? '',
    files: (program) => filesIn('tests/comparison/rivals/pi', program),
    flags: [],
    prepare: async ({ home, baseUrl }) => {
      const agentFolder = join(home, '.pi/agent')
      await mkdir(agentFolder, { recursive: true })
      await writeFile(join(agentFolder, 'models.json'), JSON.stringify({ providers: { anthropic: { baseUrl } } }))
      return { PI_OFFLINE: '1', PI_TELEMETRY: '0' }
    },
  },
  {
    name: 'Claude Agent SDK',
    version: versions['@anthropic-ai/claude-agent-sdk'] ?? '',
    files: (program) => filesIn('tests/comparison/rivals/claude-agent-sdk', program),
    flags: [],
    // It starts a program of its own, which must reach nothing but the fake provider.
    prepare: async ({ baseUrl }) => ({
      ANTHROPIC_BASE_URL: baseUrl,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
  },
]

/** Nothing listens there, so a program that looks for the outside finds nothing. */
const deadProxy = 'http://127.0.0.1:9'

/** An empty home, and only what a program needs: no key of this machine. */
export async function environmentOf(
  contender: Contender,
  place: { folder: string; providerUrl: string },
): Promise<Record<string, string>> {
  const home = join(place.folder, 'home')
  await mkdir(home, { recursive: true })
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    FOLDER: resolve(place.folder),
    ANTHROPIC_API_KEY: 'test-key',
    HTTP_PROXY: deadProxy,
    HTTPS_PROXY: deadProxy,
    NO_PROXY: '127.0.0.1,localhost',
    // Most of the time that a program takes to start is for compiling.
    NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile'),
    ...(await contender.prepare({ home, baseUrl: place.providerUrl })),
  }
}

function filesIn(folder: string, program: Program): string[] {
  if (program !== 'two-screens') return [`${folder}/${program}.ts`]
  return ['server', 'screen'].map((part) => `${folder}/two-screens-${part}.ts`)
}
