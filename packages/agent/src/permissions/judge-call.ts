import type { GateCall, Access } from '../tools/tool.ts'
import { judgeRead, judgeWrite } from './judge-path.ts'
import { usePath } from './paths/path-use.ts'
import { allowed, worst, type Judgement, type Policy } from './policy.ts'
import { effectOf, matchHost, matchTool } from './rules.ts'
import { judgeCommand } from './judge-command.ts'

/** Judges a call: the strictest judgement of all its accesses. */
export function judgeCall(call: Pick<GateCall, 'tool' | 'readOnly' | 'access'>, policy: Policy): Judgement {
  const { tool, readOnly, access } = call
  const named = effectOf(policy.rules, (rule) => matchTool(rule, tool))
  if (named === 'deny') return { effect: 'deny', reason: `A rule forbids the tool ${tool}.` }
  // A command is judged by what it does, whatever else its tool can do.
  const isCommand = access.length > 0 && access.every(({ type }) => type === 'command')
  if (policy.mode === 'plan' && !readOnly && !isCommand) {
    return {
      effect: 'deny',
      reason: `Plan mode is on, and ${tool} may change something. Make a plan and show it with exit_plan.`,
    }
  }
  const asked: Judgement[] =
    named === 'ask' ? [{ effect: 'ask', reason: `A rule requires permission for the tool ${tool}.` }] : []
  return worst([...asked, ...access.map((each) => judgeAccess(each, policy))])
}

function judgeAccess(access: Access, policy: Policy): Judgement {
  switch (access.type) {
    case 'read':
      return judgeRead({ ...usePath(access.path), isRecursive: access.isRecursive ?? false }, policy)
    case 'write':
      return judgeWrite(usePath(access.path), policy)
    case 'command':
      return judgeCommand(access.command, {
        cwd: access.cwd,
        policy: access.canSandbox ? policy : { ...policy, hasSandbox: false },
        ...(access.outside !== undefined && { outside: access.outside }),
      })
    case 'fetch':
      return judgeFetch(access.url, policy)
    case 'connect':
      return judgeHost(access.host, policy, {
        deed: 'reaching',
        reason: `No rule allows this host. To allow it always, add "fetch ${access.host}" to permissions.allow in your settings.`,
      })
    case 'ask':
      return allowed
    case 'tool':
      return judgeTool(access, policy)
    default:
      access satisfies never
      return { effect: 'ask', reason: 'It cannot be analyzed.' }
  }
}

function judgeFetch(url: string, policy: Policy): Judgement {
  const host = URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, '') : undefined
  if (host === undefined) return { effect: 'ask', reason: `${url} is not a valid URL.` }
  return judgeHost(host, policy, { deed: 'fetching from', reason: `It fetches from ${host}.` })
}

function judgeHost(
  host: string,
  { rules, mode }: Policy,
  { deed, reason }: { deed: string; reason: string },
): Judgement {
  const effect = effectOf(rules, (rule) => matchHost(rule, host))
  if (effect === 'deny') return { effect, reason: `A rule forbids ${deed} ${host}.` }
  if (effect === 'ask') return { effect, reason: `A rule requires permission for ${deed} ${host}.` }
  if (effect === 'allow' || mode === 'auto') return allowed
  return { effect: 'ask', reason, grant: [{ effect: 'allow', type: 'fetch', match: host }] }
}

function judgeTool({ name, readOnly }: Extract<Access, { type: 'tool' }>, { rules, mode }: Policy): Judgement {
  const effect = effectOf(rules, (rule) => matchTool(rule, name))
  if (effect === 'deny') return { effect, reason: `A rule forbids the tool ${name}.` }
  if (mode === 'plan' && !readOnly)
    return { effect: 'deny', reason: `Plan mode is on, and ${name} may change something.` }
  if (effect === 'ask') return { effect, reason: `A rule requires permission for the tool ${name}.` }
  if (effect === 'allow' || mode === 'auto') return allowed
  return {
    effect: 'ask',
    reason: `${name} is not a built-in tool, so its effects are unknown.`,
    grant: [{ effect: 'allow', type: 'tool', match: name }],
  }
}
