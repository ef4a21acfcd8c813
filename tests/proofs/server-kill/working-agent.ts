import { onlyModel, allowAll, type AgentSessionOptions } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import type { ModelRequest } from '@tapetree/agent/models'
import { bashTool, Jobs } from '@tapetree/agent/tools'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import type { Message } from '@tapetree/session'

/** An agent that runs a real command for each prompt, and says something before and after. */
export function workingAgent(marks: string): Partial<AgentSessionOptions> {
  const model = scriptedModel([], { clock: systemClock, otherwise: (request) => answerTo(request, marks) })
  const jobs = new Jobs()
  return { models: onlyModel(model), tools: () => [bashTool({ jobs })], gate: () => allowAll }
}

/** By what it is shown alone, so that a resumed run goes the same way. */
function answerTo({ messages }: ModelRequest, marks: string): ScriptBuilder {
  const last = messages.at(-1) as Message
  if (last.role === 'tool') return spoken('That is done, and all went well. 😀 ')
  const asked = last.content.map((block) => (block.type === 'text' ? block.text.content : '')).join('')
  const said = spoken('Let me see to it at once. ')
  const command = `echo '${asked.replaceAll("'", '')}' >> '${marks}'; for i in 1 2 3 4 5 6; do echo "step $i"; sleep 0.03; done`
  return said.toolCall(`call-${asked.replaceAll(' ', '-')}`, 'bash', { command })
}

function spoken(words: string): ScriptBuilder {
  const said = script()
  for (const word of words.repeat(2).split(/(?<= )/)) said.text(word).wait(8)
  return said
}
