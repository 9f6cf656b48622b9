/**
 * Lint rules for what the compiler does not see: who may import whom (`holdfast/layers`), where
 * time, timers and random numbers come from (`holdfast/clock`), and that what is published runs
 * without Deno too (`holdfast/portable`).
 *
 * `*_test.ts` and everything outside `src/` and `mod.ts` are free; `holdfast/portable` looks at the
 * published files of `testing/` as well.
 *
 * @module
 */

/** What is wrong with one import, and the fix. */
interface Refusal {
  readonly message: string;
  readonly hint: string;
}

const ROOT = folderPath(new URL("../../", import.meta.url));

/** Database clients, by package, and the folder of `src/` that each belongs to. */
const CLIENTS: ReadonlyMap<string, string> = new Map([
  ["postgres", "postgres"],
  ["mysql2", "mysql"],
  ["node:sqlite", "sqlite"],
  ["@db/sqlite", "sqlite"],
]);
const DATABASES: ReadonlySet<string> = new Set(CLIENTS.values());
/** Parts of `src/` that are built on the core, and that the core does not know. */
const EXTENSIONS: ReadonlySet<string> = new Set(["broadcast", "feed"]);

const OWN_NAME = "@holdfast/inbox";
const ERRORS = "src/errors.ts";
/** Writes a table for any database, none of which need be there. */
const DDL_TEXT = "src/ddl_text.ts";
const CLOCK = "src/clock.ts";
const REAL_TIME = "src/driver/real_time.ts";

const layers: Deno.lint.Rule = {
  create(context) {
    const file = ruledFile(context.filename);
    if (file === undefined) return {};
    const check = (source: Deno.lint.Node | null | undefined): void => {
      const specifier = literalText(source);
      if (source == null || specifier === undefined) return;
      const refusal = refuseImport(file, specifier);
      if (refusal !== undefined) context.report({ node: source, ...refusal });
    };
    return {
      ImportDeclaration: (node) => check(node.source),
      ExportNamedDeclaration: (node) => check(node.source),
      ExportAllDeclaration: (node) => check(node.source),
      ImportExpression: (node) => check(node.source),
      TSImportType: ({ argument }) => {
        if (argument.type === "TSLiteralType") check(argument.literal);
      },
    };
  },
};

function refuseImport(file: string, specifier: string): Refusal | undefined {
  const client = clientOf(specifier);
  if (client !== undefined) return refuseClient(file, client);
  if (specifier === OWN_NAME || specifier.startsWith(`${OWN_NAME}/`)) {
    return {
      message: `${file} imports its own package by name, ${specifier}`,
      hint: "Import the file that declares it by its relative path",
    };
  }
  if (!specifier.startsWith(".")) return undefined;
  const target = new URL(specifier, `file:///${file}`).pathname.slice(1);
  return refuseFile(file, target);
}

function refuseClient(file: string, client: string): Refusal | undefined {
  const owner = CLIENTS.get(client);
  const [, folder, name = ""] = file.split("/");
  const mayImport = folder === owner && /^(driver|[^/]*client[^/]*)\.ts$/.test(name) &&
    file === `src/${folder}/${name}`;
  if (mayImport) return undefined;
  return {
    message: `${file} imports the database client ${client}`,
    hint: `Import it in src/${owner}/driver.ts or in a src/${owner}/*client*.ts only, ` +
      "and describe what else needs it with an interface",
  };
}

function refuseFile(file: string, target: string): Refusal | undefined {
  const from = layerOf(file);
  const to = layerOf(target);
  const message = `${file} (${from}) imports ${target} (${to})`;
  if (to === "outside") {
    return !target.includes("/") ? undefined : {
      message,
      hint: "Move what both need into src/: the library imports nothing outside of it",
    };
  }
  if (DATABASES.has(from) || from === "driver") {
    if (to === from || to === "driver" || target === ERRORS) return undefined;
    const own = from === "driver" ? "" : `src/${from}/, `;
    return {
      message,
      hint: `Import only from ${own}src/driver/ and ${ERRORS}: ` +
        "move a shared type to src/driver/, or take the value as an argument",
    };
  }
  if (to === "entry") return { message, hint: "Import the file that declares it" };
  if (from !== "core" && from !== "entry") return undefined;
  if (DATABASES.has(to) && !(file === DDL_TEXT && target.endsWith("/ddl.ts"))) {
    return { message, hint: "Reach a database through Driver and Dialect of src/driver/ only" };
  }
  if (from === "core" && EXTENSIONS.has(to)) {
    return { message, hint: `Let src/${to}/ import the core and register itself, not the reverse` };
  }
  if (target === REAL_TIME) {
    return { message, hint: `Use ${CLOCK}: outside the drivers time may be virtual` };
  }
  return undefined;
}

/** `core`, `driver`, `entry` (mod.ts), `outside`, or the name of a database or an extension. */
function layerOf(path: string): string {
  if (path === "mod.ts") return "entry";
  const [top, folder = ""] = path.split("/");
  if (top !== "src") return "outside";
  return folder === "driver" || DATABASES.has(folder) || EXTENSIONS.has(folder) ? folder : "core";
}

/** The client's package, whatever the registry, version and path within it. */
function clientOf(specifier: string): string | undefined {
  if (CLIENTS.has(specifier)) return specifier;
  const [, name] = /^(?:(?:npm|jsr):\/?)?((?:@[^/]+\/)?[^@/]+)(?:[@/]|$)/.exec(specifier) ?? [];
  return name !== undefined && CLIENTS.has(name) ? name : undefined;
}

const TIMERS: ReadonlySet<string> = new Set([
  "setTimeout",
  "setInterval",
  "clearTimeout",
  "clearInterval",
]);
/** Refused members of globals that are otherwise free. */
const MEMBERS: ReadonlyMap<string, readonly string[]> = new Map([
  ["Math", ["random"]],
  ["performance", ["now"]],
  ["crypto", ["randomUUID", "getRandomValues"]],
  ["AbortSignal", ["timeout"]],
  ["Temporal", ["Now"]],
]);
/** Modules that hand out the same, and which of their names; `undefined` is all of them. */
const MODULES: ReadonlyMap<string, readonly string[] | undefined> = new Map([
  ["node:timers", undefined],
  ["node:timers/promises", undefined],
  ["node:perf_hooks", undefined],
  ["node:crypto", ["randomUUID", "getRandomValues", "randomBytes", "randomInt"]],
]);
const GLOBAL_OBJECTS: ReadonlySet<string> = new Set(["globalThis", "self", "window"]);

const clock: Deno.lint.Rule = {
  create(context) {
    const file = ruledFile(context.filename);
    if (file === undefined || file === CLOCK || file === REAL_TIME) return {};
    const layer = layerOf(file);
    const source = layer === "driver" || DATABASES.has(layer) ? REAL_TIME : CLOCK;
    const refuse = (node: Deno.lint.Node, what: string): void => {
      context.report({
        node,
        message: `${file} uses ${what}`,
        hint: `Take time, timers and random values from ${source}, and add there what it lacks`,
      });
    };
    const check = (node: Deno.lint.Identifier | Deno.lint.MemberExpression, name: string): void => {
      for (const what of refusedUses(node, name)) refuse(node, what);
    };
    return {
      Identifier(node) {
        if (isReference(node)) check(node, node.name);
      },
      MemberExpression(node) {
        const object = withoutCast(node.object);
        if (object.type !== "Identifier" || !GLOBAL_OBJECTS.has(object.name)) return;
        const name = memberName(node);
        if (name !== undefined) check(node, name);
      },
      ImportDeclaration(node) {
        if (!MODULES.has(node.source.value)) return;
        const names = MODULES.get(node.source.value);
        for (const specifier of node.specifiers) {
          const name = specifier.type === "ImportSpecifier"
            ? nameOf(specifier.imported)
            : specifier.local.name;
          if (names === undefined || name !== undefined && names.includes(name)) {
            refuse(specifier, `${name} of ${node.source.value}`);
          }
        }
      },
    };
  },
};

const portable: Deno.lint.Rule = {
  create(context) {
    const file = publishedFile(context.filename);
    if (file === undefined) return {};
    const refuse = (node: Deno.lint.Node): void => {
      context.report({
        node,
        message: `${file} uses Deno, which other runtimes lack`,
        hint: "Use a node: module, or cast globalThis to a type in which Deno may be missing, " +
          "as src/http_service.ts does",
      });
    };
    return {
      Identifier(node) {
        if (node.name === "Deno" && (isReference(node) || isTypesOwner(node))) refuse(node);
      },
      MemberExpression(node) {
        const { object } = node;
        if (object.type !== "Identifier" || !GLOBAL_OBJECTS.has(object.name)) return;
        if (memberName(node) === "Deno") refuse(node);
      },
    };
  },
};

/** Whether a type is taken from it: `Name.Type`, `typeof Name`. */
function isTypesOwner({ parent }: Deno.lint.Identifier): boolean {
  return parent.type === "TSQualifiedName" || parent.type === "TSTypeQuery";
}

/** What the use of this global at this place reaches that is refused, as one would write it. */
function refusedUses(node: Deno.lint.Node, name: string): string[] {
  if (TIMERS.has(name)) return [name];
  const members = membersUsed(node);
  if (name === "Date") return refusedDate(node, members);
  const refused = MEMBERS.get(name) ?? [];
  return members.filter((member) => refused.includes(member)).map((member) => `${name}.${member}`);
}

function refusedDate(node: Deno.lint.Node, members: readonly string[]): string[] {
  const { parent } = node as { parent: Deno.lint.Node };
  if (members.length > 0) {
    return members.filter((member) => member !== "UTC" && member !== "parse")
      .map((member) => `Date.${member}`);
  }
  if (parent.type === "BinaryExpression" && parent.operator === "instanceof") return [];
  if (parent.type !== "NewExpression" || parent.callee !== node) return ["Date"];
  return parent.arguments.length === 0 ? ["new Date() without a value"] : [];
}

/** The names taken from this object: `object.name`, `const { name } = object`. */
function membersUsed(node: Deno.lint.Node): string[] {
  const { parent } = node as { parent: Deno.lint.Node };
  if (parent.type === "MemberExpression" && parent.object === node) {
    const name = memberName(parent);
    return name === undefined ? [] : [name];
  }
  if (parent.type !== "VariableDeclarator" || parent.id.type !== "ObjectPattern") return [];
  return parent.id.properties.flatMap((property) => {
    const name = property.type === "Property" ? nameOf(property.key) : undefined;
    return name === undefined ? [] : [name];
  });
}

/** Whether the identifier stands for a variable: no key, no member, no type, no import. */
function isReference(node: Deno.lint.Identifier): boolean {
  const { parent } = node;
  if ("key" in parent && parent.key === node) return "computed" in parent && parent.computed;
  if (parent.type === "MemberExpression") return parent.object === node || parent.computed;
  return !/^(TS(?!As|Satisfies|NonNull|TypeAssertion)|Import|Export)/.test(parent.type);
}

function memberName({ property, computed }: Deno.lint.MemberExpression): string | undefined {
  return computed && property.type === "Identifier" ? undefined : nameOf(property);
}

function nameOf(node: Deno.lint.Node): string | undefined {
  return node.type === "Identifier" ? node.name : literalText(node);
}

function withoutCast(node: Deno.lint.Node): Deno.lint.Node {
  return node.type === "TSAsExpression" || node.type === "TSNonNullExpression"
    ? withoutCast(node.expression)
    : node;
}

/** The text of a string literal, or of a template without holes. */
function literalText(node: Deno.lint.Node | null | undefined): string | undefined {
  if (node?.type === "Literal" && typeof node.value === "string") return node.value;
  if (node?.type !== "TemplateLiteral" || node.quasis.length !== 1) return undefined;
  return node.quasis[0]?.cooked;
}

/** The path from the root of the project, for files that are published. */
function publishedFile(filename: string): string | undefined {
  const file = projectFile(filename);
  if (file === undefined || /^testing\/(conformance|programs|runners)\//.test(file)) {
    return undefined;
  }
  return file === "mod.ts" || /^(src|testing)\/.+\.ts$/.test(file) ? file : undefined;
}

/** The path from the root of the project, for files that the rules of layers are about. */
function ruledFile(filename: string): string | undefined {
  const file = projectFile(filename);
  return file === "mod.ts" || file?.match(/^src\/.+\.ts$/) ? file : undefined;
}

/** The path from the root of the project, unless it is a test's. */
function projectFile(filename: string): string | undefined {
  const path = filename.replaceAll("\\", "/");
  if (!path.startsWith(ROOT) || path.endsWith("_test.ts")) return undefined;
  return path.slice(ROOT.length);
}

/** The folder as the linter writes it: `/a/b/`, or `C:/a/b/` on Windows. */
function folderPath(url: URL): string {
  return decodeURIComponent(url.pathname).replace(/^\/(?=[A-Za-z]:\/)/, "");
}

const plugin: Deno.lint.Plugin = { name: "holdfast", rules: { layers, clock, portable } };
export default plugin;
