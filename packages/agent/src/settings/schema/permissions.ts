import { z } from 'zod'
import { permissionModes } from '../../permissions/modes.ts'
import { ruleSchema, type Effect } from '../../permissions/rules.ts'

/** A rule as people write it: `command npm run *`, or an object where the words have blanks in them. */
const writtenRule = z.union([
  z.string(),
  z.strictObject({ type: z.string(), match: z.union([z.string(), z.array(z.string())]) }),
])

export const permissions = z.strictObject({
  mode: z
    .enum(permissionModes)
    .describe('How much happens without asking. A project can narrow it, never widen it.')
    .exactOptional(),
  allow: rulesThat('allow')
    .describe('What passes without asking. Of a project only once it is trusted. Lists of all layers are joined.')
    .exactOptional(),
  ask: rulesThat('ask').describe('What is always asked. Lists of all layers are joined.').exactOptional(),
  deny: rulesThat('deny').describe('What never happens. Lists of all layers are joined.').exactOptional(),
})

function rulesThat(effect: Effect) {
  return z.array(
    writtenRule.transform((written, context) => {
      const parsed = ruleSchema.safeParse({ effect, ...(typeof written === 'string' ? fromText(written) : written) })
      if (parsed.success) return parsed.data
      context.addIssue({ code: 'custom', message: `This is no rule. ${ruleForms}` })
      return z.NEVER
    }),
  )
}

const ruleForms = 'A rule is "command …", "read …", "write …", "fetch …" or "tool …".'

function fromText(text: string): { type?: string | undefined; match?: string | undefined } {
  const [, type, match] = /^\s*(\w+)\s+(.*\S)\s*$/s.exec(text) ?? []
  return { type, match }
}
