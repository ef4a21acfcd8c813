import type { ProjectCommand } from './project-commands.ts'
import type { FileSettings } from './project-settings.ts'
import type { ProjectContent } from './project.ts'
import { pathText } from './check-settings.ts'
import { visibleName } from './visible-name.ts'

interface Inspected extends ProjectContent {
  settings?: FileSettings & { path: string }
  commands: readonly ProjectCommand[]
  programs: readonly { path: string }[]
  modules: readonly { path: string; bytes: Uint8Array }[]
  uncovered: readonly string[]
}

/** What the user is shown before they trust a project: all that would be started first, then what else there is. */
export function summariseProject(project: Inspected, { isForeign }: { isForeign: boolean }): string[] {
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
    ...(isComplete ? [] : ['There is more than can be looked through, so it cannot be trusted.']),
  ]
  return lines.map(visibleName)
}

/** What trusted code reads or starts by itself. It is not bound to its content. */
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

/** Programs whose first job is to find out from a file of the folder what to start. */
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
