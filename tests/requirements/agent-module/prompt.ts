import type { Requirement } from '../requirement.ts'

/** The system prompt. */
export const prompt = [
  {
    id: 'agent-module/prompt two-parts',
    says: 'The system prompt has two blocks.',
    lines: { 'System Prompt': ['c659715f', 'e9cc9c7f'], 'Design Decisions': ['d5cac4f1'] },
    settled: 'We send one block, because we do not impersonate another product.',
  },
  {
    id: 'agent-module/prompt vendor-header',
    says: "The first block names a vendor's product.",
    lines: { 'System Prompt': ['b7d046f3', 'e8db6d6a', '913c62ef', 'ee925f6a', '2719b7a4'] },
    settled: 'We omit it, because we do not impersonate another product.',
  },
  {
    id: 'agent-module/prompt main-block',
    says: 'The main block has our instructions.',
    lines: { 'System Prompt': ['30121aa9'] },
  },
  {
    id: 'agent-module/prompt who-it-is',
    says: 'The prompt tells the model who it is.',
    lines: { 'System Prompt': ['307b3f72', 'dcae07ae'] },
    settled: 'It uses our own words and name.',
  },
  {
    id: 'agent-module/prompt what-it-helps-with',
    says: 'The prompt tells the model what it helps with.',
    lines: { 'System Prompt': ['331ef8ac', 'd890d384'] },
    settled: 'It uses our own words.',
  },
  {
    id: 'agent-module/prompt length',
    says: 'The prompt covers its topics in about 160 lines.',
    lines: { 'System Prompt': ['02fdb45b', '7246f1d9'] },
  },
  {
    id: 'agent-module/prompt section-tone',
    says: 'The prompt covers tone and formatting.',
    lines: { 'System Prompt': ['7861dff6'] },
  },
  {
    id: 'agent-module/prompt section-objectivity',
    says: 'The prompt asks for accuracy and honest feedback.',
    lines: { 'System Prompt': ['52827457'] },
  },
  {
    id: 'agent-module/prompt section-code',
    says: 'The prompt covers careful changes to code.',
    lines: { 'System Prompt': ['f1f6f917'] },
  },
  {
    id: 'agent-module/prompt section-tools',
    says: 'The prompt covers the use of tools.',
    lines: { 'System Prompt': ['077d6a31'] },
  },
  {
    id: 'agent-module/prompt section-tasks',
    says: 'The prompt covers the todo list.',
    lines: { 'System Prompt': ['8f25c04d'] },
  },
  {
    id: 'agent-module/prompt section-questions',
    says: 'The prompt covers when to ask the user.',
    lines: { 'System Prompt': ['6ba6450d'] },
  },
  {
    id: 'agent-module/prompt section-git',
    says: 'The prompt covers safe use of git.',
    lines: { 'System Prompt': ['2d2fd911'] },
  },
  {
    id: 'agent-module/prompt section-errors',
    says: 'The prompt asks for the root cause of errors.',
    lines: { 'System Prompt': ['7abe9ca6'] },
  },
  {
    id: 'agent-module/prompt says-concise',
    says: 'The prompt asks for short answers.',
    lines: { 'System Prompt': ['4ba23dae'] },
  },
  {
    id: 'agent-module/prompt says-no-narration',
    says: 'The prompt forbids narrating actions.',
    lines: { 'System Prompt': ['ec039631'] },
  },
  {
    id: 'agent-module/prompt says-read-first',
    says: 'The prompt asks to read a file before changing it.',
    lines: { 'System Prompt': ['4229851e'] },
  },
  {
    id: 'agent-module/prompt says-focus',
    says: 'The prompt asks to do only the requested work.',
    lines: { 'System Prompt': ['72d919ad'] },
  },
  {
    id: 'agent-module/prompt says-todo-write',
    says: 'The prompt recommends `todo_write` for tasks of several steps.',
    lines: { 'System Prompt': ['17ff1440'] },
  },
  {
    id: 'agent-module/prompt says-git-safety',
    says: 'The prompt forbids force pushes and skipped hooks.',
    lines: { 'System Prompt': ['9390a4b3'] },
  },
] as const satisfies readonly Requirement[]
