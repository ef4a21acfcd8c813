import type { ProjectCommand } from './project-commands.ts'
import type { FileSettings } from './project-settings.ts'
import type { ProjectContent } from './project.ts'
import { pathText } from './check-settings.ts'
import { visibleName } from './visible-name.ts'

interface Inspected extends ProjectContent {
  settings?: FileSettings & { path: string }
  commands: readonly ProjectCommand[]
  programs: readonly { path: string }[]
}

/** What the user is shown before they trust a project: all that would be started first, then what else there is. */
export function summariseProject(project: Inspected, { isForeign }: { isForeign: boolean }): string[] {
  const { root, files, settings, commands, programs, leftOut, isComplete } = project
  const lines = [
    ...(isForeign ? [`${root} belongs to another user.`] : []),
    ...commands.map(({ name, text }) => `${name}: ${text}`),
    ...programs.map(({ path }) => `program of the repository: ${path}`),
    ...(settings ? settingLines(settings) : []),
    ...files.map(({ path, bytes }) => `file ${path} (${bytes.length} bytes)`),
    ...leftOut.map(({ path, reason }) => `left out ${path}: ${reason}`),
    ...(isComplete ? [] : ['There is more than can be looked through, so it cannot be trusted.']),
  ]
  return lines.map(visibleName)
}

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
