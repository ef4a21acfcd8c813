import type { Requirement } from '../requirement.ts'

/** The system prompt. */
export const prompt = [
  {
    id: 'agent-module/prompt two-parts',
    quote:
      'The agent uses a two-part system prompt for OAuth compatibility:\nOAuth --> Main\n**Two-block system prompt**: Required for Anthropic OAuth API compatibility',
    settled: 'DESIGN 7: left out, we do not impersonate.',
  },
  {
    id: 'agent-module/prompt vendor-header',
    quote:
      'Reason["Anthropic OAuth API requires<br/>specific header as first block"]\nReason -.-> OAuth\n**OAuth Header** (required as first block):',
    settled: 'DESIGN 7: left out, we do not impersonate.',
  },
  {
    id: 'agent-module/prompt main-block',
    quote: 'Main["Block 2: Main Prompt<br/>CDD instructions"]',
  },
  {
    id: 'agent-module/prompt who-it-is',
    quote:
      '**Default System Prompt** (`prompt.go`) begins with:\nYou are CDD (Context-Driven Development), an AI coding assistant that lives in your terminal.',
    settled: 'In our own words, and under our own name.',
  },
  {
    id: 'agent-module/prompt what-it-helps-with',
    quote:
      'You help developers write, understand, and improve code through context-aware workflows.\nYou understand codebases, execute tasks, and assist with git workflows - all through natural language.',
    settled: 'In our own words.',
  },
  {
    id: 'agent-module/prompt length',
    quote:
      'The full prompt (~160 lines) covers these key areas:\nThe full prompt is ~160 lines and instructs the agent to:',
  },
  {
    id: 'agent-module/prompt section-tone',
    quote: '| Tone and Style | Concise terminal output, markdown formatting, no unnecessary narration |',
  },
  {
    id: 'agent-module/prompt section-objectivity',
    quote: '| Professional Objectivity | Technical accuracy over validation, honest feedback |',
  },
  {
    id: 'agent-module/prompt section-code',
    quote: '| Working With Code | Read before modifying, stay focused, security awareness, clean deletion |',
  },
  {
    id: 'agent-module/prompt section-tools',
    quote: '| Tool Usage | Available tools for file operations, search, shell commands, parallel execution |',
  },
  {
    id: 'agent-module/prompt section-tasks',
    quote: '| Task Management | todo_write usage for complex multi-step tasks |',
  },
  {
    id: 'agent-module/prompt section-questions',
    quote: '| Asking Questions | When to clarify vs when to proceed |',
  },
  {
    id: 'agent-module/prompt section-git',
    quote: '| Git Workflows | Safety first, commit guidelines, PR best practices |',
  },
  {
    id: 'agent-module/prompt section-errors',
    quote: '| Error Handling | Investigate root cause, try different approaches |',
  },
  {
    id: 'agent-module/prompt says-concise',
    quote: 'Keep responses concise for terminal display',
  },
  {
    id: 'agent-module/prompt says-no-narration',
    quote: 'Never narrate actions (let the todo/activity panels show progress)',
  },
  {
    id: 'agent-module/prompt says-read-first',
    quote: 'Read files before modifying them',
  },
  {
    id: 'agent-module/prompt says-focus',
    quote: 'Stay focused on what was requested (no over-engineering)',
  },
  {
    id: 'agent-module/prompt says-todo-write',
    quote: 'Use todo_write for tracking multi-step tasks',
  },
  {
    id: 'agent-module/prompt says-git-safety',
    quote: 'Follow git safety practices (never force push, skip hooks, etc.)',
  },
] as const satisfies Requirement[]
