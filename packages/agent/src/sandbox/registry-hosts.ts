import { execFile } from 'node:child_process'
import { readdir, readFile, realpath } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { commandEnvironment } from '../tools/commands/environment.ts'
import { findProgram } from '../util/find-program.ts'
import { isInside } from '../util/is-inside.ts'

export interface RegistryOptions {
  home: string
  /** The folders of the project. Nothing in them counts. */
  folders: readonly string[]
  /** Of the user. */
  env: Readonly<Record<string, string | undefined>>
}

/**
 * The hosts of the registries that the user has configured, as the installed package managers tell. They are asked once, in the home folder, so
 * that no project can add a host.
 */
export function registryHosts(options: RegistryOptions): () => Promise<readonly string[]> {
  let asked: Promise<readonly string[]> | undefined
  return () => (asked ??= askAll(options))
}

interface RegistryQuestion {
  /** The first one that is installed is asked. */
  programs: readonly [string, ...string[]]
  args: readonly string[]
  /** Addresses or host names in what it prints. */
  read: (printed: string) => readonly string[]
}

const questions: readonly RegistryQuestion[] = [
  { programs: ['npm'], args: ['config', 'list', '--json'], read: npmRegistries },
  { programs: ['pnpm'], args: ['config', 'get', 'registry'], read: addressesIn },
  { programs: ['yarn'], args: ['config', 'get', 'registry'], read: addressesIn },
  { programs: ['yarn'], args: ['config', 'get', 'npmRegistryServer'], read: addressesIn },
  // Pip shows the index that is in force as the default of an option.
  { programs: ['pip3', 'pip'], args: ['install', '--help'], read: pipIndex },
  { programs: ['pip3', 'pip'], args: ['config', 'list'], read: pipExtraIndexes },
  { programs: ['go'], args: ['env', 'GOPROXY', 'GOSUMDB'], read: goProxies },
  { programs: ['gem'], args: ['sources', '--list'], read: addressesIn },
]

async function askAll({ home, folders, env }: RegistryOptions): Promise<readonly string[]> {
  const [realHome, ...real] = await Promise.all([home, ...folders].map((path) => realpath(path).catch(() => path)))
  const isOurs = (path: string): boolean => real.some((folder) => isInside(path, folder))
  // Then the settings of the user are files of the project.
  if (realHome === undefined || isOurs(realHome)) return []
  const path = await Promise.all(
    (env['PATH'] ?? '')
      .split(delimiter)
      .filter(isAbsolute)
      .map((folder) => realpath(folder).catch(() => folder)),
  )
  const safePath = path.filter((folder) => !isOurs(folder)).join(delimiter)
  const environment = environmentOf(env, { home, path: safePath })
  const answers = await Promise.all([
    ...questions.map(async ({ programs, args, read }) => {
      const found = await Promise.all(programs.map((name) => findProgram(name, safePath)))
      const program = found.find((each) => each !== undefined)
      return program === undefined ? [] : read(await print(program, args, { cwd: home, env: environment }))
    }),
    cargoRegistries(env['CARGO_HOME'] ?? join(home, '.cargo')),
  ])
  return [...new Set(answers.flat().flatMap(hostOf))].toSorted()
}

/** What commands get, and the settings of package managers. None of them may fetch anything. */
function environmentOf(
  env: RegistryOptions['env'],
  { home, path }: { home: string; path: string },
): Record<string, string> {
  // If a package manager runs us, its variables hold the settings of the project.
  const isRunByOne = ['npm_execpath', 'npm_lifecycle_event', 'npm_command'].some((name) => env[name] !== undefined)
  const pass = ['NPM_CONFIG_*', 'YARN_*', 'PIP_*', 'GOSUMDB', 'GOENV', ...(isRunByOne ? [] : ['npm_config_*'])]
  return commandEnvironment(env, {
    pass,
    set: {
      HOME: home,
      PATH: path,
      COREPACK_ENABLE_NETWORK: '0',
      COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
      GOTOOLCHAIN: 'local',
      GOWORK: 'off',
    },
  })
}

/** A command waits meanwhile. */
const patienceMs = 10_000
const maxPrintedBytes = 1024 * 1024

/** Nothing if it fails: then the user is asked about the host. */
function print(file: string, args: readonly string[], place: { cwd: string; env: NodeJS.ProcessEnv }): Promise<string> {
  return new Promise((resolve) => {
    const options = { ...place, timeout: patienceMs, killSignal: 'SIGKILL' as const, maxBuffer: maxPrintedBytes }
    execFile(file, [...args], options, (error, stdout) => resolve(error ? '' : stdout))
  })
}

function addressesIn(text: string): string[] {
  return text.match(/https?:\/\/[^\s'",|)]+/g) ?? []
}

/** The registry, and those of single scopes. */
function npmRegistries(printed: string): string[] {
  try {
    const entries = Object.entries(JSON.parse(printed) as Record<string, unknown>)
    return entries.flatMap(([key, value]) =>
      (key === 'registry' || /^@[^:]+:registry$/.test(key)) && typeof value === 'string' ? [value] : [],
    )
  } catch {
    return []
  }
}

function pipIndex(printed: string): string[] {
  const [, address] = /--index-url <url> [^]*?\(default\s+(https?:[^)\s]+)\)/.exec(printed) ?? []
  return address === undefined ? [] : [address]
}

function pipExtraIndexes(printed: string): string[] {
  return printed
    .split('\n')
    .filter((line) => /^[\w:.-]+\.(?:extra-)?index-url=/.test(line))
    .flatMap(addressesIn)
}

/** Each on a line. The checksum database is named by its host, or has an address after its name and key. */
function goProxies(printed: string): string[] {
  const [proxies = '', database = ''] = printed.split('\n')
  const [name = '', address] = database.trim().split(/\s+/)
  return [...addressesIn(proxies), address ?? `https://${name.split('+')[0]}`]
}

/** Cargo does not print its registries. It has a folder for each that the user has used, with the place of the packages. */
async function cargoRegistries(folder: string): Promise<string[]> {
  const indexes = join(folder, 'registry/index')
  const names = await readdir(indexes).catch(() => [])
  const configs = await Promise.all(
    names.map((name) => readFile(join(indexes, name, 'config.json'), 'utf8').catch(() => '')),
  )
  return [...names.map((name) => `https://${name.replace(/-[0-9a-f]{16}$/, '')}`), ...configs.flatMap(addressesIn)]
}

/** Only names with a dot: the proxy reaches no others. */
function hostOf(address: string): string[] {
  const { hostname = '' } = URL.parse(address) ?? {}
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/i.test(hostname) && !/^[\d.]+$/.test(hostname) ? [hostname] : []
}
