/*
 * Validates Kubernetes manifests without a cluster: manifests.js FILE... (each may hold several documents).
 *
 * Three things for each document, as far as a source has the kind: the JSON schema of kubernetes-models,
 * no field that the official client's generated model does not have (a schema alone lets typing errors
 * pass), and for policies the CEL expressions: all are parsed, conditions and validations are evaluated
 * on the pods that policy.test.json names. Kinds of others (PodDefault, the device plugin's config) are
 * checked against the fields that their documentation has.
 */
"use strict";

const fs = require("fs");
const path = require("path");
const modules = process.env.npm_dir + "/node_modules/";
const yaml = require(modules + "js-yaml");
const models = modules + "@kubernetes/client-node/dist/gen/models/";

let findings = 0;
function finding(where, text) {
	console.error(`${where}: ${text}`);
	findings++;
}

/* ---- fields, against the client's generated models ---------------------------------------------- */

function modelOf(name) {
	const file = models + name + ".js";
	return fs.existsSync(file) ? require(file)[name] : null;
}

const groups = ["", "admissionregistration.k8s.io", "apps", "batch", "resource.k8s.io"];

/* The generated class of a kind: V1Pod; with its group in front where two have the same name. */
function classOf(doc) {
	const [group, version] = doc.apiVersion.includes("/") ? doc.apiVersion.split("/") : ["", doc.apiVersion];
	const name = version[0].toUpperCase() + version.slice(1) + doc.kind, word = group.split(".")[0];
	if (!groups.includes(group))
		return null;
	return (word && modelOf(word[0].toUpperCase() + word.slice(1) + name)) || modelOf(name);
}

function checkType(value, type, where) {
	const array = type.match(/^Array<(.*)>$/), map = type.match(/^\{ \[key: string\]: (.*); \}$/);
	if (value === null || value === undefined)
		return finding(where, "empty");
	if (array) {
		if (!Array.isArray(value))
			return finding(where, `not a list of ${array[1]}`);
		return value.forEach((item, i) => checkType(item, array[1], `${where}[${i}]`));
	}
	if (map) {
		if (typeof value !== "object" || Array.isArray(value))
			return finding(where, "not a map");
		return Object.entries(value).forEach(([key, item]) => checkType(item, map[1], `${where}.${key}`));
	}
	if (["string", "number", "boolean"].includes(type)) {
		if (typeof value !== type)
			finding(where, `${JSON.stringify(value)} is not a ${type}`);
		return;
	}
	if (type === "IntOrString" || type === "any" || type === "Quantity" || type === "object")
		return;
	const model = modelOf(type);
	if (model)
		checkObject(value, model, where);
}

function checkObject(value, model, where) {
	if (typeof value !== "object" || Array.isArray(value))
		return finding(where, "not an object");
	const attributes = model.getAttributeTypeMap();
	for (const [key, item] of Object.entries(value)) {
		const attribute = attributes.find((a) => a.baseName === key);
		if (!attribute)
			finding(where, `no such field: ${key}`);
		else
			checkType(item, attribute.type, `${where}.${key}`);
	}
}

/* ---- JSON schemas ---------------------------------------------------------------------------------- */

function schemaModel(doc) {
	const package_ = doc.apiVersion.startsWith("argoproj.io/") ? "@kubernetes-models/argo-workflows" : "kubernetes-models";
	const file = `${modules}${package_}/${doc.apiVersion}/${doc.kind}.js`;
	return fs.existsSync(file) ? require(file)[doc.kind] : null;
}

function checkSchema(doc, where) {
	const Model = schemaModel(doc);
	if (!Model)
		return false;
	try {
		new Model(doc).validate();
	} catch (error) {
		finding(where, error.message);
	}
	return true;
}

/* ---- what has no published schema: the fields that its documentation has --------------------------- */

function only(value, fields, where) {
	for (const key of Object.keys(value))
		if (!(key in fields))
			finding(where, `no such field: ${key}`);
	for (const [key, kind] of Object.entries(fields)) {
		if (!(key in value)) {
			if (kind.required)
				finding(where, `${key} is missing`);
			continue;
		}
		if (kind.of)
			checkType(value[key], kind.of, `${where}.${key}`);
		if (kind.fields)
			only(value[key], kind.fields, `${where}.${key}`);
	}
}

const resources = {of: "any", required: true};
const sharing = {renameByDefault: {of: "boolean"}, failRequestsGreaterThanOne: {of: "boolean"}, resources};
const other = {
	"kubeflow.org/v1alpha1 PodDefault": (doc, where) => only(doc, {
		apiVersion: {}, kind: {}, metadata: {of: "V1ObjectMeta"},
		spec: {fields: {
			selector: {of: "V1LabelSelector", required: true}, desc: {of: "string"},
			env: {of: "Array<V1EnvVar>"}, envFrom: {of: "Array<V1EnvFromSource>"},
			volumeMounts: {of: "Array<V1VolumeMount>"}, volumes: {of: "Array<V1Volume>"},
			tolerations: {of: "Array<V1Toleration>"},
		}},
	}, where),
	"kustomize.config.k8s.io/v1beta1 Kustomization": () => {}, /* kubectl kustomize runs it */
	"v1 ConfigMap": (doc, where) => {
		const config = yaml.load(doc.data["config.yaml"]);
		only(config, {version: {of: "string", required: true}, sharing: {required: true, fields: {
			timeSlicing: {fields: sharing}, mps: {fields: sharing}}}}, `${where} config.yaml`);
		for (const kind of Object.values(config.sharing))
			kind.resources.forEach((r) => only(r, {name: {of: "string", required: true},
				replicas: {of: "number", required: true}}, `${where} resources`));
	},
};

/* ---- whatever puts a cap on a pod must do it whole ------------------------------------------------- */

function checkCuota(doc, where) {
	const text = JSON.stringify(doc);
	if (!text.includes('"LD_PRELOAD"'))
		return;
	const holder = doc.spec.template?.spec ?? doc.spec;
	const containers = holder.containers ?? (holder.templates ?? [holder]).map((t) => t.container ?? t);
	for (const container of containers) {
		const env = Object.fromEntries((container.env ?? []).map((e) => [e.name, e.value]));
		const mounts = (container.volumeMounts ?? []).map((m) => m.mountPath);
		const volumes = (holder.volumes ?? []).map((v) => v.name);
		if (!mounts.some((m) => env.LD_PRELOAD?.startsWith(m + "/")))
			finding(where, "nothing is mounted where LD_PRELOAD points");
		if (!mounts.includes(env.CUOTA_DIR))
			finding(where, "CUOTA_DIR is not mounted");
		for (const mount of container.volumeMounts ?? [])
			if (!volumes.includes(mount.name))
				finding(where, `no volume ${mount.name}`);
	}
}

/* ---- policies' CEL ------------------------------------------------------------------------------------ */

function celOf(doc) {
	const spec = doc.spec;
	return [
		...(spec.matchConditions ?? []).map((c) => ["condition " + c.name, c.expression]),
		...(spec.variables ?? []).map((v) => ["variable " + v.name, v.expression]),
		...(spec.validations ?? []).map((v, i) => ["validation " + i, v.expression]),
		...(spec.mutations ?? []).map((m, i) => ["mutation " + i, (m.applyConfiguration ?? m.jsonPatch).expression]),
	];
}

function checkCel(doc, where, cel) {
	for (const [name, expression] of celOf(doc)) {
		try {
			cel.parse(expression);
		} catch (error) {
			finding(where, `${name}: ${error.message}`);
		}
	}
}

function evaluate(cel, expression, object) {
	return cel.run(expression, {object});
}

/* "admit", "deny" or "skip" as the API server would decide on the pod. */
function decide(doc, object, cel) {
	if (!(doc.spec.matchConditions ?? []).every((c) => evaluate(cel, c.expression, object) === true))
		return "skip";
	return (doc.spec.validations ?? []).every((v) => evaluate(cel, v.expression, object) === true) ? "admit" : "deny";
}

function checkPolicy(doc, where, cel) {
	checkCel(doc, where, cel);
	const cases = JSON.parse(fs.readFileSync(path.join(__dirname, "policy.test.json")))[doc.metadata.name];
	for (const {what, pod, expect} of cases ?? []) {
		const got = decide(doc, pod, cel);
		if (got !== expect)
			finding(where, `${what}: ${got}, not ${expect}`);
	}
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

function checkDocument(doc, where, cel) {
	const name = `${doc.apiVersion} ${doc.kind}`, model = classOf(doc);
	const known = checkSchema(doc, where);
	if (model)
		checkObject(doc, model, where);
	if (other[name])
		other[name](doc, where);
	if (!known && !model && !other[name])
		finding(where, `nothing knows ${name}`);
	if (doc.spec)
		checkCuota(doc, where);
	if (/^(Mutating|Validating)AdmissionPolicy$/.test(doc.kind))
		checkPolicy(doc, where, cel);
}

async function loadCel() {
	const {parse, run} = await import(modules + "@bufbuild/cel/dist/esm/index.js");
	return {parse, run};
}

loadCel().then((cel) => {
	let documents = 0;
	for (const file of process.argv.slice(2)) {
		for (const doc of yaml.loadAll(fs.readFileSync(file, "utf8"))) {
			if (!doc)
				continue;
			documents++;
			checkDocument(doc, `${file} ${doc.kind}/${doc.metadata?.name ?? ""}`, cel);
		}
	}
	console.log(`${documents} documents, ${findings} findings`);
	process.exit(findings || !documents ? 1 : 0);
});
