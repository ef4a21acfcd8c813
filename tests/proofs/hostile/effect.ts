import { isDeepStrictEqual } from 'node:util'
import { buildSystemPrompt } from '@tapetree/agent/run'
import type { Resources } from '@tapetree/agent/settings'
import type { Visited } from './visit.ts'

/** What the child saw, and in which folder. */
interface SeenIn {
  root: string
  visited: Visited
}

/**
 * What a repository changed, compared with an empty one; nothing, if all is well. Where it configures nothing, there is nothing to
 * trust: then its instructions are words that the model may read in a new session. The name of its branch is told in any case.
 */
export function effectOf({ root, visited }: SeenIn, empty: SeenIn): string[] {
  const { state, settings, resources, requests } = visited
  const { visited: none } = empty
  const isNothing = state === 'nothing-to-trust'
  const instructions = isNothing ? resources.instructions : []
  const holds: Record<string, boolean> = {
    'it is trusted': state === 'untrusted' || isNothing,
    'it has other settings': isDeepStrictEqual(settings, none.settings),
    'it has resources': isDeepStrictEqual({ ...resources, instructions: [], problems: [] }, none.resources),
    'it has instructions': isDeepStrictEqual(resources.instructions, instructions),
    'it makes problems': isNothing || visited.problems.length === 0,
    'its session is not listed': visited.listed.length === 1,
    'its run is not resumed as it should': isDeepStrictEqual(
      [visited.plan, visited.ends],
      [
        ['interrupted', 'run', 'run'],
        ['completed', 'completed'],
      ],
    ),
    'the resumed request is another': isDeepStrictEqual(
      requests.resumed.map((request) => told(request, { root, instructions: [] })),
      none.requests.resumed.map((request) => told(request, { root: empty.root, instructions: [] })),
    ),
    'the request in a new session is another': isDeepStrictEqual(
      requests.prompted.map((request) => told(request, { root, instructions })),
      none.requests.prompted.map((request) => told(request, { root: empty.root, instructions: [] })),
    ),
    'a request has characters that cannot be seen': ![...requests.resumed, ...requests.prompted].some(hasInvisible),
  }
  return Object.entries(holds).flatMap(([problem, isWell]) => (isWell ? [] : [problem]))
}

const gitLine = /\nGit: (?:no branch is checked out|branch "[^"<>\p{C}]{1,201}")\n/u

/** A request without what may differ: the day, the branch if there is one, and the system prompt where it is as it should be. */
function told(request: string, { root, instructions }: Pick<Resources, 'instructions'> & { root: string }): unknown {
  const environment = { platform: process.platform, cwd: root, shell: 'bash' }
  const systemPrompt = buildSystemPrompt({ environment, instructions, skills: [] })
  return JSON.parse(request, (_, value: unknown) => {
    if (typeof value !== 'string') return value
    if (value === systemPrompt) return 'the system prompt of an empty repository, and instructions where they may be'
    return value.replace(gitLine, '\n').replace(/\nDate: [\w, -]+\n/, '\nDate\n')
  })
}

function hasInvisible(request: string): boolean {
  let isFound = false
  JSON.parse(request, (_, value: unknown) => {
    isFound ||= typeof value === 'string' && /[^\P{C}\n\t]/u.test(value)
    return value
  })
  return isFound
}
