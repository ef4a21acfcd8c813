import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import { createContext, Script } from 'node:vm'

/** A sentence on what is wrong with an input; nothing where it fits. */
export type InputCheck = (input: unknown) => string | undefined

/** A pattern or a tangle of references can be made to take for ever; who wrote the schema is not our friend. */
const checkMs = 1000
const check = new Script('check()')

/**
 * Checks inputs against a JSON Schema that somebody else wrote. The schema is interpreted, not compiled into code, and the check is
 * stopped when it takes too long. Throws where nobody can tell what kind of schema it is.
 */
export function inputCheck(schema: Record<string, unknown>): InputCheck {
  const validate = new CfWorkerJsonSchemaValidator().getValidator(structuredClone(schema))
  return (input) => {
    try {
      const { valid, errorMessage } = interrupted(() => validate(input))
      return valid ? undefined : errorMessage
    } catch (error) {
      return `It could not be checked: ${error instanceof Error ? error.message : String(error)}`
    }
  }
}

/** Only the script of a context can be stopped while it runs, together with what it calls. */
function interrupted<T>(work: () => T): T {
  return check.runInContext(createContext({ check: work }), { timeout: checkMs }) as T
}
