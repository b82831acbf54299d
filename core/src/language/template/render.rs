//! Renders compiled templates.

use std::ops::Range;

use super::ast::{Branch, Call, Command, Expression, Node, Pipeline, Slot, Term};
use super::call;
use super::error::{Fault, Place, TemplateError};
use super::field::{is_descendant_field, is_path_field};
use super::function::Function;
use super::operand::{Operand, View};
use super::scope::{Observed, Scope};
use super::sink::{Latitude, Sink};
use super::{MAX_WORK, Template};

/// Renders `template`.
pub(super) fn render(template: &Template, scope: &Scope<'_>) -> Result<String, TemplateError> {
    let mut evaluator = Evaluator {
        template,
        scope,
        dot: Operand::Root,
        variables: vec![Operand::Missing; template.parsed.slots],
        sink: Sink::new(template.kind, scope.target.names),
        work: 0,
    };
    evaluator.nodes(&template.parsed.nodes)?;
    let place = |action: Range<usize>| Place::new(&template.text, action.clone(), action.start);
    evaluator.sink.finish().map_err(|(action, fault)| fault.at(place(action)))
}

struct Evaluator<'r> {
    template: &'r Template,
    scope: &'r Scope<'r>,
    dot: Operand<'r>,
    variables: Vec<Operand<'r>>,
    sink: Sink,
    work: usize,
}

impl<'r> Evaluator<'r> {
    fn nodes(&mut self, nodes: &'r [Node]) -> Result<(), TemplateError> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &'r Node) -> Result<(), TemplateError> {
        match node {
            Node::Text(text) => {
                let whole = 0..self.template.text.len();
                self.sink.push_text(text).map_err(|fault| self.failed(&whole, fault))
            }
            Node::Output(expression) => self.output(expression),
            Node::Assign { slot, value } => {
                let value = self.evaluate(value)?;
                self.assign(Some(*slot), value);
                Ok(())
            }
            Node::If { branches, otherwise } => {
                for branch in branches {
                    let value = self.evaluate(&branch.expression)?;
                    self.assign(branch.variable, value.clone());
                    if call::is_true(&value, self.scope) {
                        return self.nodes(&branch.body);
                    }
                }
                self.nodes(otherwise)
            }
            Node::With { branch, otherwise } => {
                let value = self.evaluate(&branch.expression)?;
                self.assign(branch.variable, value.clone());
                if call::is_true(&value, self.scope) {
                    self.with_dot(value, &branch.body)
                } else {
                    self.nodes(otherwise)
                }
            }
            Node::Range { branch, key, item, otherwise } => self.range(branch, *key, *item, otherwise),
        }
    }

    fn output(&mut self, expression: &'r Expression) -> Result<(), TemplateError> {
        let value = self.evaluate(expression)?;
        let root_dot = matches!(self.dot, Operand::Root);
        let latitude = match expression.single_key(root_dot) {
            Some(key) if is_descendant_field(key) && self.scope.target.descendants.is_some() => {
                Latitude::Empty
            }
            Some(key) if is_path_field(key) => Latitude::Path,
            _ => Latitude::None,
        };
        let pushed = value.text().and_then(|text| self.sink.push_value(&text, &expression.span, latitude));
        pushed.map_err(|fault| self.failed(&expression.span, fault))
    }

    fn range(
        &mut self,
        branch: &'r Branch,
        key: Option<Slot>,
        item: Option<Slot>,
        otherwise: &'r [Node],
    ) -> Result<(), TemplateError> {
        let over = self.evaluate(&branch.expression)?;
        let entries = self.entries(&over).map_err(|fault| self.failed(&branch.expression.span, fault))?;
        if entries.is_empty() {
            return self.nodes(otherwise);
        }
        for (name, value) in entries {
            self.charge(1).map_err(|fault| self.failed(&branch.expression.span, fault))?;
            self.assign(key, name);
            self.assign(item, value.clone());
            self.with_dot(value, &branch.body)?;
        }
        Ok(())
    }

    /// Returns the entries to range over: elements by index, members by name.
    fn entries(&self, over: &Operand<'r>) -> Result<Vec<(Operand<'r>, Operand<'r>)>, Fault> {
        if let Some(items) = call::items(over) {
            let indexes = (0_i64..).map(Operand::Int);
            return Ok(indexes.zip(items.iter().map(Operand::Value)).collect());
        }
        let fields = match over {
            Operand::Root => self.scope.fields(),
            Operand::Payload => self.scope.payload_fields(),
            Operand::Value(crate::payload::Value::Object(members)) => {
                members.iter().map(|(name, value)| (name.as_str(), Operand::Value(value))).collect()
            }
            _ if matches!(over.view(), View::Nothing) => return Ok(Vec::new()),
            _ => {
                return Err(Fault::evaluate(format!(
                    "range requires an array or an object, not {}",
                    over.kind()
                )));
            }
        };
        Ok(fields.into_iter().map(|(name, value)| (Operand::Field(name), value)).collect())
    }

    fn with_dot(&mut self, dot: Operand<'r>, body: &'r [Node]) -> Result<(), TemplateError> {
        let outer = std::mem::replace(&mut self.dot, dot);
        let done = self.nodes(body);
        self.dot = outer;
        done
    }

    fn assign(&mut self, slot: Option<Slot>, value: Operand<'r>) {
        if let Some(variable) = slot.and_then(|slot| self.variables.get_mut(slot)) {
            *variable = value;
        }
    }

    fn evaluate(&mut self, expression: &'r Expression) -> Result<Operand<'r>, TemplateError> {
        self.pipeline(&expression.pipeline).map_err(|fault| self.failed(&expression.span, fault))
    }

    fn pipeline(&mut self, pipeline: &'r Pipeline) -> Result<Operand<'r>, Fault> {
        self.charge(1)?;
        let mut value = match &pipeline.first {
            Command::Term(term) => self.term(term)?,
            Command::Call(call) => self.call(call, None)?,
        };
        for call in &pipeline.rest {
            value = self.call(call, Some(value))?;
        }
        Ok(value)
    }

    fn call(&mut self, call: &'r Call, piped: Option<Operand<'r>>) -> Result<Operand<'r>, Fault> {
        let mut operands = Vec::with_capacity(call.operands.len() + 1);
        for term in &call.operands {
            let operand = self.term(term)?;
            let decides = match call.function {
                Function::And => !call::is_true(&operand, self.scope),
                Function::Or => call::is_true(&operand, self.scope),
                _ => false,
            };
            if decides {
                return Ok(operand);
            }
            operands.push(operand);
        }
        operands.extend(piped);
        let compares = matches!(call.function, Function::Eq | Function::Ne);
        self.charge(operands.iter().map(|operand| operand.steps(compares)).sum())?;
        let result = call::call(call.function, &operands, self.scope)?;
        let made = if let Operand::Text(text) = &result { text.len() } else { 0 };
        self.charge(1 + made)?;
        Ok(result)
    }

    fn term(&mut self, term: &'r Term) -> Result<Operand<'r>, Fault> {
        Ok(match term {
            Term::Literal(value) => Operand::Value(value),
            Term::Dot => self.dot.clone(),
            Term::Root => Operand::Root,
            Term::Observed => self.scope.observed.operand(),
            Term::Variable(slot) => self.variables.get(*slot).cloned().unwrap_or(Operand::Missing),
            Term::Pointer(pointer) => call::at_pointer(pointer, self.scope),
            Term::Group(pipeline) => self.pipeline(pipeline)?,
            Term::Fields { of, .. } if self.is_unknown(of) => self.scope.observed.operand(),
            Term::Fields { of, names } => {
                let of = self.term(of)?;
                names.iter().try_fold(of, |of, name| call::field(&of, name, self.scope))?
            }
        })
    }

    fn is_unknown(&self, term: &Term) -> bool {
        matches!((term, self.scope.observed), (Term::Observed, Observed::Unknown))
    }

    /// Counts evaluations and the bytes that functions return, to limit the work for any payload.
    fn charge(&mut self, units: usize) -> Result<(), Fault> {
        self.work = self.work.saturating_add(units);
        if self.work > MAX_WORK {
            return Err(Fault::Limit(format!("rendering takes more than {MAX_WORK} steps").into()));
        }
        Ok(())
    }

    fn failed(&self, action: &Range<usize>, fault: Fault) -> TemplateError {
        fault.at(Place::new(&self.template.text, action.clone(), action.start))
    }
}
