interface Call {
  name: string
  input: Record<string, unknown>
}

/** What tells most about a call, such as the command or the path. It is not harmless yet. */
export function callArgument({ name, input }: Call): string {
  if (name === 'todo_write') return ''
  for (const member of telling) {
    const value = input[member]
    if (typeof value === 'string' && value !== '') return member === 'pattern' ? value + whereOf(input) : value
  }
  const [only, ...others] = Object.values(input)
  if (typeof only === 'string' && others.length === 0) return only
  return only === undefined ? '' : JSON.stringify(input).slice(0, longestJson)
}

/** Members of the input of any tool, the one that tells most first. */
const telling = ['command', 'pattern', 'path', 'url', 'description', 'question', 'query', 'prompt', 'jobId']
const longestJson = 1000

function whereOf({ path }: Record<string, unknown>): string {
  return typeof path === 'string' && path !== '' ? ` in ${path}` : ''
}
