import { checkSettings, type SettingFault } from './check-settings.ts'
import type { ProjectFile } from './project.ts'
import type { CheckedSettings } from './schema.ts'
import type { ReadSettings } from './settings-text.ts'

export const settingsFileNames = ['settings.json', 'settings.yaml', 'settings.yml']

export interface SettingsFile {
  path: string
  bytes: Uint8Array
}

/** What one file of settings says, and what is wrong with it. */
export interface FileSettings {
  settings: CheckedSettings
  malformed?: ReadSettings & { type: 'malformed' }
  faults: (SettingFault & { line?: number })[]
  lineOf: (path: readonly PropertyKey[]) => number | undefined
}

export async function parseSettingsFile({ path, bytes }: SettingsFile): Promise<FileSettings> {
  // Loaded on demand: the parser is large.
  const { readSettingsText } = await import('./settings-text.ts')
  const read = readSettingsText(bytes, path.endsWith('.json') ? 'json' : 'yaml')
  if (read.type === 'malformed') return { settings: {}, malformed: read, faults: [], lineOf: () => undefined }
  const { value, lineOf } = read.written
  const { settings, faults } = checkSettings(value)
  const nearestLine = (whole: readonly PropertyKey[]): number | undefined => {
    for (let length = whole.length; length > 0; length--) {
      const line = lineOf(whole.slice(0, length))
      if (line !== undefined) return line
    }
    return undefined
  }
  return {
    settings,
    faults: faults.map((fault) => {
      const line = nearestLine(fault.path)
      return { ...fault, ...(line !== undefined && { line }) }
    }),
    lineOf: nearestLine,
  }
}

/** The file of settings at the root of a repository, and those beside it that are not read. */
export function projectSettingsFiles(files: readonly ProjectFile[]): ProjectFile[] {
  return settingsFileNames.flatMap((name) => files.find(({ path }) => path === `.tapetree/${name}`) ?? [])
}
