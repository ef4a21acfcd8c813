// A complete embedding: a person with settings, a repository that asks to be trusted, models by name, a template, a skill, a command
// of the user's own. Only the provider is scripted, and even that one speaks its wire format over HTTP.
import { openCodingAgent, type AgentSession, type CodingAgent } from '@tapetree/agent'
import { parseShellInput } from '@tapetree/agent/run'
import { startFakeProvider, type FakeAnswer } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const folder = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-example-')))
const [home, cwd] = [join(folder, 'home'), join(folder, 'repository')]
await using provider = await startFakeProvider()
await layOut(provider.baseUrl('openaiCompatible'))
provider.script(say('Green tea, please.'), say('Black tea, please.'), say('It is warm.'))

const store = openFileStore({ folder: join(folder, 'sessions') })
const embedding = await openCodingAgent({
  store,
  cwd,
  home,
  env: { PATH: process.env['PATH'], TAPETREE_THINKING_LEVEL: 'low' },
  // Without this nobody is asked, and nothing of the repository counts.
  askTrust: async ({ project }) => {
    for (const line of project.summary) console.log(`the repository: ${line}`)
    return true
  },
  whenUnanswered: 'deny',
  onProblem: ({ source, message }) => console.log(`${source}: ${message}`),
})
const { session, settings, trust, registry } = embedding
console.log('trust:', trust.state)
console.log('thinking level from:', settings.origins.get('thinkingLevel')?.variable)
console.log('models:', (await registry.choose(settings.values.modelCycle)).models.map(({ id }) => id).join(', '))

await type(session, '/brew green')
await session.cycleModel()
await type(session, '/skill:tea black')
await type(session, '!echo 80 degrees')
await type(session, 'Is that warm?')
showRequests(embedding)

await embedding.close()
await store.close()
await rm(folder, { recursive: true })

/** What a terminal does with a line that somebody typed. */
async function type(agent: AgentSession, typed: string): Promise<void> {
  const command = parseShellInput(typed)
  if (command) {
    const { output, exitCode } = await agent.executeBash(command.command, command)
    console.log(`> ${typed}\n${output.trim()} (${exitCode})`)
    return
  }
  const { outcome, text } = await agent.ask(typed)
  console.log(`> ${typed}\n${outcome} by ${agent.state().model.modelId}: ${text}`)
}

/** Where everything came together: in what the model was sent. */
function showRequests({ resources }: CodingAgent): void {
  const sent = provider.requests.map(({ body }) => JSON.stringify(body))
  const holds = (index: number, words: string): boolean => sent[index]?.includes(words) ?? false
  console.log('skills:', resources.skills.map(({ name }) => name).join(', '))
  console.log('the template was filled:', holds(0, 'Brew a pot of green tea.'))
  console.log('the instructions are there:', holds(0, 'Always say please.'))
  console.log('the skill was read:', holds(1, 'Black tea takes boiling water.'))
  console.log('the command was seen:', holds(2, '80 degrees'))
}

function say(words: string): FakeAnswer {
  return { type: 'answer', content: [{ type: 'text', chunks: [words] }], usage: { input: 100, output: 5 } }
}

async function layOut(baseUrl: string): Promise<void> {
  const models = ['small', 'large'].map((id) => ({ id, contextTokens: 100_000, outputTokens: 4096 }))
  const settings = {
    model: 'tea/small',
    modelCycle: ['tea/small', 'tea/large'],
    providers: { tea: { api: 'openai-compatible', baseUrl, models } },
  }
  const files = {
    'home/.config/tapetree/settings.json': JSON.stringify(settings),
    'home/.config/tapetree/prompts/brew.md': 'Brew a pot of ${1:-black} tea.',
    'repository/.git/HEAD': 'ref: refs/heads/main\n',
    'repository/AGENTS.md': 'Always say please.',
    'repository/.agents/skills/tea/SKILL.md':
      '---\nname: tea\ndescription: How tea is made.\n---\nBlack tea takes boiling water.\n',
  }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true, mode: 0o700 })
    await writeFile(join(folder, path), content)
  }
}
