import { lstat, realpath } from 'node:fs/promises'
import { relative, resolve, sep, isAbsolute } from 'node:path'
import { isInside } from '../util/is-inside.ts'
import { readBounded } from './config-files.ts'
import { parseSettingsFile, projectSettingsFiles, pathText, type FileSettings } from './check-settings.ts'
import { readModules, type ProjectModules } from './project-modules.ts'
import { sha256Of } from '../util/request-hash.ts'
import { readProject, type ProjectContent } from './project.ts'
import { visibleName } from '../util/visible-text.ts'
import type { McpServerSettings } from '../mcp/server-settings.ts'
import type { CheckedSettings } from './schema.ts'

/** A program of the repository that its configuration starts. */
export interface ProjectProgram {
  path: string
  sha256: string
}

/** What a repository would configure and run, for the user to decide. Nothing of it is in force. */
export interface Project extends ProjectContent, Omit<ProjectModules, 'leftOut'> {
  /** Its settings with their problems; absent if there are none. */
  settings?: FileSettings & { path: string }
  commands: ProjectCommand[]
  programs: ProjectProgram[]
  /** Of the paths and contents of all files, programs and modules. */
  hash: string
  /** Lines for the trust prompt, safe to show, not shortened. */
  summary: string[]
}

/** Larger programs start without a check of their content, and the summary says so. */
const maxProgramBytes = 8 * 1024 * 1024
const maxPrograms = 64

/** Only reads: starts no program, writes nothing, resolves no host. */
export async function inspectProject(root: string, cwd: string = root): Promise<Project> {
  const content = await readProject(root, cwd)
  const [settingsFile] = projectSettingsFiles(content.files)
  const settings = settingsFile && { ...(await parseSettingsFile(settingsFile)), path: settingsFile.path }
  const commands = settings ? projectCommands(settings.settings, content.root) : []
  const { programs, leftOut } = await readPrograms(commands, content)
  const extensions = projectExtensions({ root: content.root, ...(settings && { settings }) })
  const { leftOut: modulesLeftOut, ...code } = await readModules(extensions, content)
  const project = {
    ...content,
    ...code,
    leftOut: [...content.leftOut, ...leftOut, ...modulesLeftOut],
    commands,
    programs,
    ...(settings && { settings }),
  }
  const isForeign = (await lstat(content.root)).uid !== (process.getuid?.() ?? 0)
  return { ...project, hash: hashOf(project), summary: summarizeProject(project, { isForeign }) }
}

/** The paths of the extensions that a project names, absolute. */
export function projectExtensions({ root, settings }: Pick<Project, 'root' | 'settings'>): string[] {
  return (settings?.settings.extensions ?? []).map((path) => resolve(root, '.tapetree', path))
}

/**
 * Why a command of a trusted project must not start, if there is a reason: a file of the repository that it names
 * differs from the trusted one. Called before each start, because programs start from the disk.
 */
export async function changedProgram(command: ProjectCommand, project: Project): Promise<string | undefined> {
  const { root, files, programs, leftOut } = project
  for (const real of await filesNamed(command.words, project)) {
    const path = relative(root, real).split(sep).join('/')
    if (leftOut.some((each) => each.path === path)) continue
    const known = programs.find((each) => each.path === path) ?? files.find((each) => each.realPath === real)
    const result = await readBounded(real, maxProgramBytes)
    if (result.type === 'read' && sha256Of(result.bytes) === known?.sha256) continue
    return `${visibleName(path)} has changed since you trusted it, so ${command.name} is not started. Open the project again to review it.`
  }
  return undefined
}

function hashOf({ files, programs, modules }: Pick<Project, 'files' | 'programs' | 'modules'>): string {
  const lines = [...files, ...programs, ...modules].map(({ path, sha256 }) => JSON.stringify([path, sha256]))
  return sha256Of(lines.sort().join('\n'))
}

async function readPrograms(
  commands: readonly ProjectCommand[],
  { root, folders, files }: ProjectContent,
): Promise<Pick<Project, 'programs' | 'leftOut'>> {
  const known = new Set(files.map(({ path }) => path))
  const programs: ProjectProgram[] = []
  const leftOut: Project['leftOut'] = []
  const words = commands.flatMap((command) => command.words)
  for (const real of await filesNamed(words, { root, folders })) {
    const path = relative(root, real).split(sep).join('/')
    if (known.has(path)) continue
    known.add(path)
    const result = await readBounded(real, maxProgramBytes)
    if (result.type === 'read' && programs.length < maxPrograms) {
      programs.push({ path, sha256: sha256Of(result.bytes) })
    } else {
      const reason = result.type === 'refused' ? result.reason : 'There are too many programs.'
      leftOut.push({ path, reason: `${reason} It is started without a check of its content.` })
    }
  }
  return { programs, leftOut }
}

/** The files of the repository that words of commands name, relative to any folder in which the commands may run. */
async function filesNamed(
  words: readonly string[],
  { root, folders }: Pick<ProjectContent, 'root' | 'folders'>,
): Promise<Set<string>> {
  const found = new Set<string>()
  for (const path of new Set(words.flatMap((word) => folders.map((folder) => resolve(root, folder, word))))) {
    try {
      const real = await realpath(path)
      if (isInside(real, root) && (await lstat(real)).isFile()) found.add(real)
    } catch {
      // There is no such file.
    }
  }
  return found
}

interface Inspected extends ProjectContent {
  settings?: FileSettings & { path: string }
  commands: readonly ProjectCommand[]
  programs: readonly { path: string }[]
  modules: readonly { path: string; bytes: Uint8Array }[]
  uncovered: readonly string[]
}

/** What the user sees before they trust a project: everything that would be started, then the rest. */
function summarizeProject(project: Inspected, { isForeign }: { isForeign: boolean }): string[] {
  const { root, files, settings, commands, programs, modules, leftOut, isComplete } = project
  const lines = [
    ...(isForeign ? [`${root} belongs to another user.`] : []),
    ...commands.map(({ name, text }) => `${name}: ${text}`),
    ...programs.map(({ path }) => `program of the repository: ${path}`),
    ...(settings ? settingLines(settings) : []),
    ...files.map(({ path, bytes }) => `file ${path} (${bytes.length} bytes)`),
    ...modules.map(({ path, bytes }) => `module ${path} (${bytes.length} bytes)`),
    ...leftOut.map(({ path, reason }) => `left out ${path}: ${reason}`),
    ...notCovered(project).map((what) => `not covered by trust: ${what}`),
    ...(isComplete ? [] : ['It has too many files to inspect, so it cannot be trusted.']),
  ]
  return lines.map(visibleName)
}

/** What trusted code reads or starts by itself. Its content is not checked. */
function notCovered({ settings, commands, uncovered }: Inspected): string[] {
  const runners = commands.filter(({ words }) => words.some((word) => scriptRunners.has(word)))
  const others = commands.filter((command) => command.words.length > 0 && !runners.includes(command))
  const namesOf = (list: readonly ProjectCommand[]): string => list.map(({ name }) => name).join(', ')
  const { extensions = [] } = settings?.settings ?? {}
  return [
    ...(runners.length > 0 ? [`scripts that are started by name, as from package.json (${namesOf(runners)})`] : []),
    ...(others.length > 0 ? [`other files that commands read or start (${namesOf(others)})`] : []),
    ...(extensions.length > 0 ? ['other files that extensions read or start'] : []),
    ...uncovered,
  ]
}

/** Programs that read from a file of the folder what to start. */
const scriptRunners = new Set(
  'npm npx pnpm pnpx yarn bun bunx deno make gmake just task rake cargo go gradle mvn tox nox uv uvx poetry pdm hatch'.split(
    ' ',
  ),
)

function settingLines({ path, settings, malformed, faults }: FileSettings & { path: string }): string[] {
  const { permissions = {}, extensions = [], model, systemPrompt } = settings
  return [
    ...(malformed ? [`${path} cannot be read: ${malformed.message}`] : []),
    ...extensions.map((extension) => `extension ${extension}`),
    ...(permissions.allow ?? []).map(({ type, match }) => `allows without asking: ${type} ${[match].flat().join(' ')}`),
    ...(permissions.mode === undefined ? [] : [`mode ${permissions.mode}`]),
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(systemPrompt?.append === undefined ? [] : [`adds to the system prompt: ${systemPrompt.append}`]),
    ...faults.map((fault) => `${path}: ${pathText(fault.path)}: ${fault.message}`),
  ]
}

/** Something that a project would start, connect to or load. */
export interface ProjectCommand {
  /** `MCP server github`, `hook toolCall 1`. */
  name: string
  /** A description for the user's decision: the whole command with all of its words. */
  text: string
  /** Hash of everything that decides what happens. */
  sha256: string
  /** The command line of a hook, as the settings have it. */
  command?: string
  /** Words that may name files of the repository. */
  words: string[]
}

function projectCommands(settings: CheckedSettings, root: string): ProjectCommand[] {
  const servers = Object.entries(settings.mcpServers ?? {}).map(([name, server]) => {
    const { text, words } = describeServer(server, root)
    return { name: `MCP server ${name}`, text, words, sha256: mcpServerHash(server, root) }
  })
  const hooks = Object.entries(settings.hooks ?? {}).flatMap(([event, list]) =>
    (list ?? []).map(({ matcher, command, timeoutMs }, index) => ({
      name: `hook ${event} ${index + 1}`,
      text: `${command}${matcher === undefined ? '' : ` (for ${matcher})`}`,
      command,
      words: shellWords(command),
      sha256: sha256Of(JSON.stringify([event, matcher ?? null, command, timeoutMs ?? null])),
    })),
  )
  const { shellPrefix } = settings
  const prefix =
    shellPrefix === undefined
      ? []
      : [{ name: 'shell prefix', text: shellPrefix, words: shellWords(shellPrefix), sha256: sha256Of(shellPrefix) }]
  return [...servers, ...hooks, ...prefix]
}

/** Equal for the same command with the same words, variables and folder, in any order of names. */
function mcpServerHash(server: McpServerSettings, root: string): string {
  if (server.type === 'http')
    return sha256Of(JSON.stringify(['http', server.url, sorted(server.headers), server.oauth]))
  const { command, args, env, cwd = '.' } = server
  const folder = resolve(root, cwd)
  const variables = [[...env.pass].sort(), sorted(env.set)]
  return sha256Of(JSON.stringify(['stdio', resolveCommand(command, folder), args, variables, folder]))
}

function sorted(values: Record<string, string>): [string, string][] {
  return Object.entries(values).sort(([left], [right]) => (left < right ? -1 : 1))
}

/** A command with a slash is a file, relative to its folder; any other is looked up in PATH when it starts. */
function resolveCommand(command: string, folder: string): string {
  return command.includes('/') && !isAbsolute(command) ? resolve(folder, command) : command
}

function describeServer(server: McpServerSettings, root: string): { text: string; words: string[] } {
  if (server.type === 'http') {
    return { text: `${server.url}${inBrackets('headers', Object.keys(server.headers))}`, words: [] }
  }
  const { command, args, env, cwd } = server
  const call = [command, ...args]
  const place = cwd === undefined ? '' : ` (in ${quoted(cwd)})`
  const set = sorted(env.set).map(([name, value]) => `${name}=${quoted(value)}`)
  return {
    text: `${call.map(quoted).join(' ')}${place}${inBrackets('sets', set)}${inBrackets('is given', env.pass)}`,
    words: [...call, ...args.flatMap(shellWords), ...call.map((word) => resolve(root, cwd ?? '.', word))],
  }
}

function inBrackets(word: string, names: readonly string[]): string {
  return names.length === 0 ? '' : ` (${word} ${names.join(', ')})`
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

/** Intentionally rough: every part that might be the name of a file. */
function shellWords(text: string): string[] {
  return text.split(/[\s'"`;|&()<>=]+/).filter(Boolean)
}
