import type { LoadedSettings, Origin } from '@tapetree/agent'
import type { settingListSchema } from '@tapetree/client'
import type { z } from 'zod'

type SettingList = z.infer<typeof settingListSchema>

/** Every value with where it comes from. What may be a secret is named and not shown. */
export function settingsBody({
  values,
  origins,
  problems,
}: Pick<LoadedSettings, 'values' | 'origins' | 'problems'>): SettingList {
  const settings = [...origins]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, origin]) => ({ key, value: shown(valueAt(values, key), key), origin: originOf(origin) }))
  return { settings, problems: problems.map(({ message }) => message) }
}

const secretName = /(^|\.|_|-)(env|headers|auth|authorization|credentials?|cookies?)$|key$|token|secret|password/i
const hidden = '(not shown)'

/** A name may have dots in it: the longest one that is there counts. */
function valueAt(value: unknown, key: string): unknown {
  if (key === '') return value
  if (typeof value !== 'object' || value === null) return null
  for (let end = key.length; end > 0; end = key.lastIndexOf('.', end - 1)) {
    const name = key.slice(0, end)
    if (!Object.hasOwn(value, name)) continue
    return valueAt((value as Record<string, unknown>)[name], key.slice(end + 1))
  }
  return null
}

function shown(value: unknown, key: string): unknown {
  if (value === undefined) return null
  if (secretName.test(key)) return value === null ? null : hidden
  if (Array.isArray(value)) return value.map((each) => shown(each, ''))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shown(member, name)]))
}

function originOf({ layer, file, line, variable }: Origin): SettingList['settings'][number]['origin'] {
  return {
    layer,
    ...(file !== undefined && { file }),
    ...(line !== undefined && { line }),
    ...(variable !== undefined && { variable }),
  }
}
