/** What `/init` asks the agent for. `wishes` are words of the user, and may be empty. */
export function initPrompt(wishes: string): string {
  return [
    'Look at this repository and write AGENTS.md at its root: instructions for coding agents that work here. If the file exists, improve it and ' +
      'keep what is still true.',
    'Find out before you write: which languages and tools it uses, how it is built, how all tests and how a single test are run, how it is ' +
      'formatted and checked, how the code is laid out, and which conventions a newcomer would get wrong. Run commands only to check that they work.',
    'Keep it under 60 lines. State only what you have verified, and nothing that every programmer knows.',
    ...(wishes === '' ? [] : [`Also: ${wishes}`]),
  ].join('\n\n')
}
